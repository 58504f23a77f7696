"""Processes for tests that kill, limit or race others: they never fork from a process in which torch has worked.

A fork copies memory and one thread. What torch's other threads held, such as autograd's, is lost, so that a child may
hang or be refused. Children come from a server that has imported torch and never used it.
"""

import multiprocessing
from multiprocessing.context import BaseContext

#: imported once, in the server, and not again in each child
PRELOAD = ["__main__", "torch", "transformers", "socialgraph.ranking"]


def fresh() -> BaseContext:
    """Return multiprocessing's context whose processes start fresh; where there is no such server, slowly."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOAD)
    return context
