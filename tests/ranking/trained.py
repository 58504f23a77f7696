"""Trainings of the task that a tiny model learns in seconds."""

from training_task import OPTIONS

from socialgraph.data import TrainingGroups
from socialgraph.nn import Socialformer
from socialgraph.ranking import train


def trained(task, folder, model=None, size=16, negatives=1, draw=0, **options):
    """Train a Socialformer, or another model, on so many groups; return it and the log, with a line for each step."""
    backbone, split, builder = task
    model = Socialformer.from_backbone(backbone) if model is None else model
    groups = TrainingGroups(split, size, negatives, draw)
    return model, train(model, builder, groups, folder, **{**OPTIONS, "logging_steps": 1, **options})


def losses_of(log):
    """Return the loss of each step."""
    return [line["loss"] for line in log if "loss" in line]
