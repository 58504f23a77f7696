"""A process whose memory really ends: batches get smaller and give the same scores, and what never fits is named."""

import gc
import json
import os
import resource
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))  # where it is called as a program
from conftest import write_tiny_bert
from tales import builder_of, random_texts

from socialgraph.errors import SocialgraphError
from socialgraph.nn import ColBERT
from socialgraph.partition import Windows
from socialgraph.ranking import rerank

MEGABYTE = 1 << 20


def ranker(folder):
    """Return a builder of long documents and a small wide model, whose states are what takes the memory."""
    sizes = {"hidden_size": 256, "num_hidden_layers": 1, "intermediate_size": 256, "max_position_embeddings": 160}
    write_tiny_bert(folder, **sizes)
    *texts, huge = random_texts([*range(300, 700, 10), 100_000])
    named = {f"d{i:02}": text for i, text in enumerate(texts)} | {"huge": huge}
    return builder_of(str(folder), named, passages=Windows(100), lengths=(100_000,))


def in_little_memory(megabytes, function):
    """Return what the function gives, and its warnings, while the process can take so many megabytes more."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    before, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + megabytes * MEGABYTE, most))
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                result = function()
            except SocialgraphError as error:
                result = f"{type(error).__name__}: {error}"
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (before, most))
    return [result, [str(w.message) for w in caught if "memory" in str(w.message)]]


def program(folder):
    """Do everything with and without enough memory; print what came of it."""
    torch.set_num_threads(1)
    gc.freeze()  # each collection, and there are many, passes over what was imported
    folder = Path(folder)
    builder = ranker(folder)
    queries, candidates = {"q": "w1 w2 w3"}, {"q": dict.fromkeys(sorted(builder.documents)[:40], 1.0)}
    options = {"progress": False}
    colbert = ColBERT.from_backbone(str(folder))

    def work(budget):
        return rerank(colbert, builder, queries, candidates, budget, **options)

    found = {"smaller": [work(1000), *in_little_memory(24, lambda: work(10**9))]}
    huge = {"q": {"d01": 1.0, "huge": 1.0}}
    found["huge"] = in_little_memory(24, lambda: rerank(colbert, builder, queries, huge, **options))
    print(json.dumps(found))


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    if not Path("/proc/self/statm").exists():
        pytest.skip("memory can be limited on Linux only")
    command = [sys.executable, __file__, str(tmp_path_factory.mktemp("memory"))]
    # large blocks go back to the system, so that nothing is left over from the work before
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MALLOC_MMAP_THRESHOLD_": "65536"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=1800)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_smaller_batches_have_the_same_scores(outcome):
    enough, little, warned = outcome["smaller"]
    assert warned[0].startswith(f"out of memory on a batch of {len(enough['q'])} documents: token_budget=")
    assert little["q"] == pytest.approx(enough["q"], abs=1e-5)


def test_a_document_too_large_is_named(outcome):
    message, _ = outcome["huge"]
    assert message == (
        "TooLargeError: document 'huge' for query 'q', 100000 word pieces, does not fit in memory even alone; "
        "read less of it (document_length), use a smaller model, or a machine with more memory"
    )


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_gpu_without_memory_takes_smaller_batches(tmp_path):
    builder = ranker(tmp_path)
    builder.device = torch.device("cuda")
    queries, candidates = {"q": "w1 w2 w3"}, {"q": dict.fromkeys(sorted(builder.documents)[:40], 1.0)}
    model = ColBERT.from_backbone(str(tmp_path)).cuda()
    enough = rerank(model, builder, queries, candidates, 1000, progress=False)
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + 64 * MEGABYTE) / total)
    try:
        with pytest.warns(UserWarning, match="out of memory on a batch of 40 documents: token_budget="):
            little = rerank(model, builder, queries, candidates, 10**9, progress=False)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert little["q"] == pytest.approx(enough["q"], abs=1e-5)


if __name__ == "__main__":
    program(sys.argv[1])
