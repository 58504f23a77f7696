"""Kills a training at random moments and starts it again until it is done; it has to end as an undisturbed one.

Three stages of a cascade are trained one after the other, with dropout, accumulation and a checkpoint every other step.
Half of the kills fall anywhere, half of them while a checkpoint is being written. Long form:

    python tests/trust/kill_training.py --kills 20
"""

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))  # where it is called as a program
from children import fresh
from safetensors.torch import load_file, save_model
from transformers import BertConfig, BertModel, BertTokenizerFast

from socialgraph.data import Document, GraphBuilder, Split, TermStatistics, Tokens, TrainingGroups
from socialgraph.edges import DynamicDistance, SocialEdges, StaticDistance
from socialgraph.nn.idcm import IDCM
from socialgraph.partition import EdgeCircles, Windows
from socialgraph.ranking import train

OPTIONS = {
    "learning_rate": 2e-3, "per_device_train_batch_size": 2, "gradient_accumulation_steps": 2, "num_train_epochs": 2,
    "logging_steps": 3, "save_strategy": "steps", "save_steps": 2, "use_cpu": True, "disable_tqdm": True,
}  # fmt: skip


def write_bert(folder):
    """Write a random BERT of 2 layers x 32 with its tokenizer."""
    torch.manual_seed(0)
    folder.mkdir(parents=True)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{i}" for i in range(195))]
    (folder / "vocab.txt").write_text("\n".join(words))
    BertModel(
        BertConfig(
            vocab_size=200, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
            max_position_embeddings=96,
        ),
        add_pooling_layer=False,
    ).save_pretrained(folder)  # fmt: skip
    BertTokenizerFast(vocab=str(folder / "vocab.txt")).save_pretrained(folder)


def task(bert, length=25, edges=True):
    """Return a builder and the queries' split: documents about one word each; the query is the word."""
    texts = {f"d{i}": f"w{i} " * 5 + " ".join(f"w{(7 * i + j) % 195}" for j in range(length - 5)) for i in range(8)}
    documents = {name: Document(name, text) for name, text in texts.items()}
    queries = {f"q{i}": f"w{i}" for i in range(8)}
    grades = {f"q{i}": {f"d{i}": 1} for i in range(8)}
    split = Split(queries, grades, {query: dict.fromkeys(documents, 1.0) for query in queries})
    tokens = Tokens(str(bert))
    statistics = TermStatistics.of(tokens, documents)
    if not edges:
        return GraphBuilder(documents, tokens, statistics, passages=Windows(8)), split
    social = SocialEdges([StaticDistance(), DynamicDistance()])
    return GraphBuilder(documents, tokens, statistics, social, EdgeCircles(k=2, max_size=64), Windows(16)), split


def cascade(bert):
    """Return a model with three stages of training."""
    return IDCM.from_backbone(str(bert), chunks=2, kernels=3)


def life(bert, run):
    """Train what is left to train, and write the weights and the log."""
    builder, split = task(bert, edges=False)
    groups = TrainingGroups(split, size=16, negatives=2)
    torch.manual_seed(os.getpid())  # what a checkpoint does not restore would show
    model = cascade(bert)
    model.load_state_dict(load_file(bert / "start.safetensors"))
    logs = []
    for stage in model.stages:
        folder = run / stage
        logs.append(train(model, builder, groups, split.queries, folder, stage=stage, resume=True, **OPTIONS))
    save_model(model, str(run / "end.safetensors"))
    (run / "log.json").write_text(json.dumps([[what_repeats(line) for line in log] for log in logs]))


def what_repeats(line):
    """Return a line of the log without times and speeds."""
    return {name: value for name, value in line.items() if not name.startswith(("train_runtime", "train_s"))}


def told_life(bert, run):
    """Live, and write down what is said."""
    torch.set_num_threads(1)
    with open(run / "errors", "a") as errors:
        os.dup2(errors.fileno(), 1)
        os.dup2(errors.fileno(), 2)
    life(bert, run)


def start(bert, run):
    """Return a new process that lives."""
    child = fresh().Process(target=told_life, args=(bert, run))
    child.start()
    return child


def ended(child, run):
    """Tell whether a process ended by itself; it must have done well."""
    if child.exitcode is None:
        return False
    assert child.exitcode == 0, (run / "errors").read_text()
    return True


def kill(child, run, draw, seconds):
    """Kill a process after a random time, or in a random moment of its next checkpoint; tell where, None: too late."""
    if saving := draw.random() < 0.5:
        nth = draw.randrange(1, 4)
        names = set()
        while len(names) < nth:
            if ended(child, run):
                return None
            names |= {path.name for path in run.glob("*/.checkpoint-*.part")}
            time.sleep(0.0005)
        time.sleep(draw.uniform(0, 0.02))
    else:
        time.sleep(draw.uniform(0, seconds / 2))
    if ended(child, run):
        return None
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    parts = [path.parent.name + "/" + path.name for path in run.glob("*/.checkpoint-*.part")]
    last = sorted((path.parent.name, int(path.name[11:])) for path in run.glob("*/checkpoint-*"))
    return f"{'in a checkpoint' if saving else 'anywhere'}: whole {last}, half-written {parts}"


def same(run, reference):
    """Compare what two trainings ended with, bit for bit."""
    mine, theirs = load_file(run / "end.safetensors"), load_file(reference / "end.safetensors")
    assert mine.keys() == theirs.keys()
    different = [name for name in mine if not torch.equal(mine[name], theirs[name])]
    assert not different, f"{run}: weights differ: {different}"
    assert json.loads((run / "log.json").read_text()) == json.loads((reference / "log.json").read_text())


def main(kills, seed, folder):
    """Kill as often as that, over as many trainings as it takes; return how many trainings there were."""
    draw = random.Random(seed)
    write_bert(folder / "bert")
    save_model(cascade(folder / "bert"), str(folder / "bert" / "start.safetensors"))
    reference = folder / "undisturbed"
    reference.mkdir()
    began = time.perf_counter()
    child = start(folder / "bert", reference)
    while not ended(child, reference):
        time.sleep(0.01)
    seconds = time.perf_counter() - began
    print(f"undisturbed: {seconds:.1f} s; seed {seed}")
    done = trainings = halves = 0
    while done < kills:
        run = folder / f"killed-{trainings}"
        run.mkdir()
        while True:
            child = start(folder / "bert", run)
            if done == kills:
                while not ended(child, run):
                    time.sleep(0.01)
                break
            where = kill(child, run, draw, seconds)
            if where is None:
                break
            done += 1
            halves += "half-written ['" in where
            print(f"kill {done} {where}")
        same(run, reference)
        trainings += 1
    print(f"{done} kills, {halves} of them left a half-written checkpoint; {trainings} trainings ended as the other")
    return trainings


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        main(options.kills, options.seed, Path(place))
