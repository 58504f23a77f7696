"""Compile the Triton kernels for an NVIDIA H100 without having one: prints registers and stack of each, as JSON."""

import json
import re
import subprocess
import tempfile
from pathlib import Path

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from socialgraph.kernels import FACTOR_STEP, SUM_STEP, attention, gpu, passes

TYPES = dict.fromkeys(("ptr", "key", "start", "edge_index", "friend_tie"), "*i64")
TYPES |= dict.fromkeys(("kernel", "constant", "scale", "row", "u", "v"), "*fp64")
TYPES |= dict.fromkeys(("weights", "portion", "factor", "result", "bound"), "*fp64")
TYPES |= dict.fromkeys(("lower", "higher", "degree", "share", "friend", "friend_key", "members", "leaders"), "*i32")
TYPES |= {"weight": "*fp32"} | dict.fromkeys(("nodes", "total", "k", "max_size"), "i32")
STEPS = {"FACTOR_STEP": FACTOR_STEP, "SUM_STEP": SUM_STEP}
TILES = {"ROWS": gpu.ROWS, "COLUMNS": gpu.COLUMNS}
CIRCLES = {"S": 3, "WORDS": 1, "TILE": gpu.TILE, "MEMBERS": gpu.MEMBERS, "LEADER_KEY": gpu.LEADER_KEY}


HALF = dict.fromkeys(("query", "key", "value", "out", "grad", "grad_query", "grad_key", "grad_value"), "*bf16")
HALF |= dict.fromkeys(("x", "added", "grad_x", "grad_added"), "*bf16")
HALF |= dict.fromkeys(("lse", "weight", "bias", "mean", "rstd", "sums"), "*fp32") | {"scale": "fp32", "eps": "fp32"}
HALF |= dict.fromkeys(("words", "positions", "segments"), "*fp32")
HALF |= dict.fromkeys(("query_ptr", "key_ptr", "token", "position", "segment"), "*i64") | {"dropout": "fp32"}
HALF |= dict.fromkeys(("rows", "query_row", "key_row", "blocks", "heads", "seed", "columns", "vocabulary"), "i32")


def usage(kernel, warps, types=TYPES, **constants):
    """Return the registers of a thread and the bytes of its stack, which spilled registers lie on."""
    signature = {name: "constexpr" if name in constants else types[name] for name in kernel.arg_names}
    aligned = {  # as PyTorch's tensors and the rows of their heads lie; it decides how wide memory is read
        (place,): [["tt.divisibility", 16]]
        for place, name in enumerate(kernel.arg_names)
        if signature[name].startswith("*") or name.endswith("_row")
    }
    source = ASTSource(
        kernel, signature, {(kernel.arg_names.index(name),): x for name, x in constants.items()}, aligned
    )
    code = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": warps}).asm["cubin"]
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        Path(file.name).write_bytes(code)
        tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
        told = subprocess.run([tool, "--dump-resource-usage", file.name], capture_output=True, text=True).stdout
    return {name: int(re.search(rf"{name}:(\d+)", told)[1]) for name in ("REG", "STACK")}


if __name__ == "__main__":
    found = {
        "smooth": usage(gpu.smooth_kernel, 4, KINDS=3, **STEPS, TILE=gpu.TILE),
        "totals": usage(gpu.totals_kernel, 4, S=3, SUM_STEP=SUM_STEP, TILE=gpu.TILE),
        "prepare": usage(gpu.prepare_kernel, 4, WORDS=1, TILE=gpu.TILE),
        "degree": usage(gpu.degree_kernel, 4, S=3, **TILES),
        "edges": usage(gpu.edges_kernel, 4, S=3, **TILES),
        "edge-level": usage(gpu.circles_kernel, gpu.WARPS, NODE_LEVEL=False, BY_WEIGHT=True, **CIRCLES),
        "node-level": usage(gpu.circles_kernel, gpu.WARPS, NODE_LEVEL=True, BY_WEIGHT=True, **CIRCLES),
        "the first": usage(gpu.circles_kernel, gpu.WARPS, NODE_LEVEL=False, BY_WEIGHT=False, **CIRCLES),
    }
    for name, kernel, tiles in (
        ("attention", attention.attention_kernel, attention.FORWARD),
        ("attention, long", attention.attention_kernel, attention.LONG),
        ("attention, backward", attention.attention_backward_kernel, attention.BACKWARD),
    ):
        found[name] = usage(kernel, tiles[2], HALF, **dict(zip("MN", tiles, strict=False)), D=64)
    for dropout in (False, True):
        row = {"COLUMNS": 768, "BLOCK": 1024, "DROPOUT": dropout}
        for name in ("add_norm", "add_norm_backward"):
            found[f"{name}, dropout {dropout}"] = usage(getattr(passes, f"{name}_kernel"), 4, HALF, **row)
    found["embed"] = usage(passes.embed_kernel, 4, HALF, COLUMNS=768, BLOCK=1024)
    found["gelu_backward"] = usage(passes.gelu_backward_kernel, 4, HALF, ROWS=passes.TILE[0], COLUMNS=passes.TILE[1])
    print(json.dumps(found))
