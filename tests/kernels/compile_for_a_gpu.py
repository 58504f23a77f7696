"""Compile the Triton kernels for an NVIDIA H100 without having one: prints registers and stack of each, as JSON."""

import json
import re
import subprocess
import tempfile
from pathlib import Path

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from socialgraph.kernels import gpu

TYPES = dict.fromkeys(("ptr", "key", "start", "edge_index", "friend_tie"), "*i64")
TYPES |= dict.fromkeys(("kernel", "constant", "scale", "row", "u", "v"), "*fp64")
TYPES |= dict.fromkeys(("lower", "higher", "degree", "share", "friend", "friend_key", "members", "leaders"), "*i32")
TYPES |= {"weight": "*fp32"} | dict.fromkeys(("nodes", "total", "k", "max_size"), "i32")
TILES = {"ROWS": gpu.ROWS, "COLUMNS": gpu.COLUMNS}
CIRCLES = {"S": 3, "WORDS": 1, "TILE": gpu.TILE, "MEMBERS": gpu.MEMBERS, "LEADER_KEY": gpu.LEADER_KEY}


def usage(kernel, warps, **constants):
    """Return the registers of a thread and the bytes of its stack, which spilled registers lie on."""
    signature = {name: TYPES.get(name, "constexpr") for name in kernel.arg_names}
    source = ASTSource(kernel, signature, {(kernel.arg_names.index(name),): x for name, x in constants.items()})
    code = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": warps}).asm["cubin"]
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        Path(file.name).write_bytes(code)
        tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
        told = subprocess.run([tool, "--dump-resource-usage", file.name], capture_output=True, text=True).stdout
    return {name: int(re.search(rf"{name}:(\d+)", told)[1]) for name in ("REG", "STACK")}


if __name__ == "__main__":
    found = {
        "prepare": usage(gpu.prepare_kernel, 4, WORDS=1, TILE=gpu.TILE),
        "degree": usage(gpu.degree_kernel, 4, S=3, **TILES),
        "edges": usage(gpu.edges_kernel, 4, S=3, **TILES),
        "edge-level": usage(gpu.circles_kernel, gpu.WARPS, NODE_LEVEL=False, BY_WEIGHT=True, **CIRCLES),
        "node-level": usage(gpu.circles_kernel, gpu.WARPS, NODE_LEVEL=True, BY_WEIGHT=True, **CIRCLES),
        "the first": usage(gpu.circles_kernel, gpu.WARPS, NODE_LEVEL=False, BY_WEIGHT=False, **CIRCLES),
    }
    print(json.dumps(found))
