"""A collection in wtq's form and what is typed so that a study of it takes seconds."""

import gzip
import json

import pytest
from commands import call, configuration, configured
from lab.study import study_runs

ANIMALS = ["otter", "heron", "badger", "lynx", "newt", "raven", "stoat", "toad"]
SPLITS = {"train": ANIMALS[:3], "dev_bal": ANIMALS[3:5], "test_bal": ANIMALS[4:], "test": ANIMALS[5:]}
ROWS = "rows=[bm25,parade,socialformer-edge]"


@pytest.fixture
def budget(tmp_path, tiny_bert):
    """Return what is typed so that a study takes seconds: a collection in wtq's form, a BERT of three layers.

    Documents have 30 to 170 word pieces. A question is three of them, and its evidence is where they stand.
    """
    folder = tmp_path / "data" / "wtq"
    folder.mkdir(parents=True)
    evidence, flags, words = ["qid\tdoc_id\tstart_tok\tend_tok"], [], {}
    with gzip.open(folder / "corpus.jsonl.gz", "wt") as corpus:
        for place, animal in enumerate(ANIMALS):
            words[animal] = [f"w{(place * 23 + i * i) % 190}" for i in range(30 + 20 * place)]
            corpus.write(json.dumps({"doc_id": animal, "text": " ".join(words[animal])}) + "\n")
    for split, part in SPLITS.items():
        starts = {animal: 7 + 12 * ANIMALS.index(animal) for animal in part}
        asked = {animal: " ".join(words[animal][start : start + 3]) for animal, start in starts.items()}
        (folder / f"queries.{split}.tsv").write_text("".join(f"{split}-{a}\t{asked[a]}\n" for a in part))
        (folder / f"qrels.{split}.txt").write_text("".join(f"{split}-{a} 0 {a} 1\n" for a in part))
        there = part if split == "train" else ANIMALS
        (folder / f"run.bm25.{split}.txt").write_text(
            "".join(f"{split}-{a} Q0 {d} {i + 1} {9 - i} bm25\n" for a in part for i, d in enumerate(there))
        )
        evidence += [f"{split}-{a}\t{a}\t{start}\t{start + 3}" for a, start in starts.items()]
        flags += [f"{split}-{a}\t{int(a in ('toad', 'newt'))}\t1" for a in part]
    (folder / "evidence.tsv").write_text("\n".join(evidence) + "\n")
    (folder / "flags.tsv").write_text("\n".join(flags) + "\n")
    return [
        f"data_root={tmp_path / 'data'}", f"results={tmp_path / 'results'}", f"work={tmp_path / 'work'}",
        f"model.backbone={tiny_bert[0]}", "size.short=24", "size.long=48", "size.original=48",
        "size.long_circles=2", "window=16", "partition.max_size=8", "trainer.groups=2", "trainer.negatives=1",
        "trainer.bf16=false", "data.depth=8", "bounds=[48,100]",
    ]  # fmt: skip


def study(*typed):
    call("study", *typed)


def planned(*typed):
    """Return the runs that a study has."""
    with configuration():
        return study_runs(configured("study", *typed))


def value_of(folder, row, seed=0):
    """Return a run's JSON."""
    return json.loads((folder / f"{row}.{seed}.json").read_text())
