"""Trains and re-ranks, in as many processes as it is started with; the first writes the run file and the weights.

Arguments: a folder with a BERT, an output folder, the gradient accumulation, the batch in which the second process is
killed (0: none).
"""

import json
import os
import signal
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))
from safetensors.torch import save_model
from training_task import task_for

from socialgraph.data import TrainingGroups, write_run
from socialgraph.nn import Socialformer
from socialgraph.ranking import processes, rerank, train
from socialgraph.ranking.losses import listwise_cross_entropy

bert, out, accumulation, fatal = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
torch.set_num_threads(1)


batches = 0


def loss(scores, group, relevant):
    """Return the listwise loss; the last process kills itself in its n-th batch."""
    global batches
    batches += 1
    if batches == fatal and processes.number() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return listwise_cross_entropy(scores, group, relevant)


split, builder = task_for(bert)
torch.manual_seed(0)
model = Socialformer.from_backbone(str(bert), dropout=0.0)
log = train(
    model, builder, TrainingGroups(split, size=32, negatives=2), out / "training", loss, resume=True,
    learning_rate=2e-3, per_device_train_batch_size=2, gradient_accumulation_steps=accumulation, logging_steps=1,
    save_strategy="steps", save_steps=2, use_cpu=True, disable_tqdm=True,
)  # fmt: skip
run = rerank(model, builder, split.queries, split.candidates, progress=False, distributed=True)
if processes.is_first():
    write_run(out / "run.txt", run)
    save_model(model, str(out / "model.safetensors"))
    (out / "log.json").write_text(json.dumps([line["loss"] for line in log if "loss" in line]))
print(f"process {processes.number()} of {processes.count()} is done")
