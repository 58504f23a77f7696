"""A batch that does not fit is halved and gives the same gradients; a group that does not fit alone says its name."""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch
from conftest import write_tiny_bert
from training_task import task_for

from socialgraph.data import TrainingGroups
from socialgraph.errors import TooLargeError
from socialgraph.nn import Socialformer
from socialgraph.ranking import train


def test_too_little_memory_on_a_cpu(tmp_path):
    # small allocations straight from the system, so that what is free is free
    own = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_ARENA_MAX": "1", "OMP_NUM_THREADS": "1"}
    program = str(Path(__file__).with_name("train_in_little_memory.py"))
    done = subprocess.run(
        [sys.executable, program, str(tmp_path)],
        capture_output=True, text=True, timeout=1800, check=False, env={**os.environ, **own},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout.splitlines()[-1])
    print(report)
    assert report["told"] == []
    assert report["told in less"] == [
        "out of memory on a batch of 4 groups: halved; per_device_train_batch_size=2 and "
        "gradient_accumulation_steps twice as high would avoid it"
    ]
    assert report["moved"] > 1e-3
    assert report["apart"] < 1e-6
    assert report["refused"].startswith("query 'q")
    assert "its 3 documents do not fit in memory even alone; the longest, 'd" in report["refused"]
    assert "has 900 word pieces; lower document_length or the group's negatives" in report["refused"]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_too_little_memory_on_a_gpu(tmp_path):
    write_tiny_bert(tmp_path / "bert", num_hidden_layers=8)  # so that ids alone take little of the memory
    split, builder = task_for(tmp_path / "bert", length=1500)
    builder.device = torch.device("cuda")
    builder.edges.to("cuda")
    groups = TrainingGroups(split, size=48, negatives=2)
    weights, told, need = {}, {}, 0

    def trained(name, size):
        torch.manual_seed(0)
        model = Socialformer.from_backbone(str(tmp_path / "bert"), dropout=0.0).cuda()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            train(
                model, builder, groups, tmp_path / name, optim="sgd", max_grad_norm=0, learning_rate=0.1,
                per_device_train_batch_size=size, gradient_accumulation_steps=2, disable_tqdm=True,
            )  # fmt: skip
        weights[name] = {key: value.cpu() for key, value in model.state_dict().items()}
        told[name] = [str(warning.message) for warning in caught if "out of memory" in str(warning.message)]

    def allow(size):
        torch.cuda.empty_cache()
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, size / total))

    try:
        trained("warm", 1)
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        trained("free", 12)
        need = torch.cuda.max_memory_allocated() - before
        allow(before + need * 3 // 4)
        trained("tight", 12)
        allow(before + need // 30)
        with pytest.raises(TooLargeError, match="its 3 documents do not fit in memory even alone"):
            trained("too little", 12)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert told["free"] == []
    assert len(told["tight"]) == 1
    for name, value in weights["free"].items():
        torch.testing.assert_close(weights["tight"][name], value, atol=1e-5, rtol=1e-4, msg=name)
