"""Processes for tests that kill, limit or race others: they never fork from a process in which torch has worked.

A fork copies memory and one thread. What torch's other threads held, such as autograd's, is lost, so that a child may
hang or be refused. Children come from a server that has imported torch and never used it; so do the workers of a
DataLoader, by ``never_fork``, which also makes a list of the forks that come all the same.

A program that starts there has nothing slow left to import, which takes a new interpreter several seconds. So tests
start programs with ``run``, and with ``subprocess`` only where an interpreter's start is what they are about.
"""

import gc
import multiprocessing
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from multiprocessing.context import BaseContext
from pathlib import Path

#: imported once, in the server, and not again in each child
PRELOAD = ["__main__", "torch", "transformers", "transformers.trainer", "accelerate", "socialgraph.ranking"]


#: where this process was forked since ``never_fork``
FORKS: list[str] = []


def fresh() -> BaseContext:
    """Return multiprocessing's context whose processes start fresh; where there is no such server, slowly."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOAD)
    return context


def never_fork():
    """Let this process start others fresh unless it is told another way, and keep in ``FORKS`` where it still forks.

    ``subprocess`` does not count: its child becomes another program at once.
    """
    multiprocessing.set_start_method(fresh().get_start_method(), force=True)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lambda: FORKS.append("".join(traceback.format_stack(limit=12))))


def _become(command, folder, environment, out, err):
    """Be the program, as the interpreter would run it."""
    gc.freeze()  # what the server has imported is never looked through for garbage
    for path, number in ((out, 1), (err, 2)):
        os.dup2(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND), number)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = command
    sys.path[:0] = [str(Path(command[0]).parent), *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    runpy.run_path(command[0], run_name="__main__")


class Program:
    """A Python program in a process of its own, like ``subprocess.Popen([sys.executable, *command], env=...)``."""

    def __init__(self, *command, cwd=None, **environment):
        self.args = [str(word) for word in command]
        self._files = [Path(tempfile.mkdtemp(), name) for name in ("out", "err")]
        arguments = (self.args, str(cwd or Path.cwd()), {**os.environ, **environment}, *map(str, self._files))
        self.process = fresh().Process(target=_become, args=arguments)
        self.process.start()

    def poll(self):
        return self.process.exitcode

    def send_signal(self, number):
        os.kill(self.process.pid, number)

    def wait(self, timeout=600) -> subprocess.CompletedProcess:
        """Return what came, as ``subprocess.run`` does."""
        self.process.join(timeout)
        if self.process.exitcode is None:
            self.send_signal(signal.SIGKILL)
            raise subprocess.TimeoutExpired(self.args, timeout)
        said = [path.read_text() if path.exists() else "" for path in self._files]
        return subprocess.CompletedProcess(self.args, self.process.exitcode, *said)


def run(*command, **options) -> subprocess.CompletedProcess:
    """Do what ``subprocess.run([sys.executable, *command], ...)`` does, with what it wrote as text."""
    return Program(*command, **options).wait()


def run_together(count, *command, **options) -> list[subprocess.CompletedProcess]:
    """Run a program in several processes at once, in the environment in which torchrun starts them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    same = {"WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    started = []
    for number in range(count):
        own = {name: str(value) for name, value in {**same, "RANK": number, "LOCAL_RANK": number}.items()}
        started.append(Program(*command, **options, **own))
    return [one.wait() for one in started]
