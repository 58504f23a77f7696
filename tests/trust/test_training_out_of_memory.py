"""A training step that does not fit in memory says what to lower, and with that it fits."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from conftest import write_tiny_bert
from training_task import task_for

from socialgraph.data import TrainingGroups
from socialgraph.errors import TooLargeError
from socialgraph.nn import Socialformer
from socialgraph.ranking import train

TOLD = "out of memory in step 1: lower per_device_train_batch_size=6 (and raise gradient_accumulation_steps=1 by as"


def test_too_little_memory_on_a_cpu(tmp_path):
    # small allocations straight from the system, so that what is free is free
    own = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_ARENA_MAX": "1", "OMP_NUM_THREADS": "1"}
    program = str(Path(__file__).with_name("train_in_little_memory.py"))
    done = subprocess.run(
        [sys.executable, program, str(tmp_path)],
        capture_output=True, text=True, timeout=1800, check=False, env={**os.environ, **own},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1])["refused"].startswith(TOLD)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_too_little_memory_on_a_gpu(tmp_path):
    write_tiny_bert(tmp_path / "bert", num_hidden_layers=8)  # so that ids alone take little of the memory
    split, builder = task_for(tmp_path / "bert", length=1500)
    builder.device = torch.device("cuda")
    builder.edges.to("cuda")

    def trained(size):
        model = Socialformer.from_backbone(str(tmp_path / "bert"), dropout=0.0).cuda()
        groups = TrainingGroups(split, size=size, negatives=2)
        train(model, builder, groups, tmp_path / "training", per_device_train_batch_size=size, disable_tqdm=True)

    try:
        trained(1)
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        trained(6)
        need = torch.cuda.max_memory_allocated() - before
        torch.cuda.empty_cache()
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction((before + need // 2) / total)
        with pytest.raises(TooLargeError) as error:
            trained(6)
        assert str(error.value).startswith(TOLD)
        trained(1)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
