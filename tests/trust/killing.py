"""A work is killed at random moments and begun again until it ends; tests compare what it leaves with a quiet one's."""

import argparse
import random
import signal
import tempfile
import time
from pathlib import Path


def undisturbed(begin, folder):
    """Let a work end in a new folder; return how many seconds it took once it had begun."""
    folder.mkdir(parents=True)
    child = begin(folder)
    begun = time.perf_counter()
    child.join()
    assert child.exitcode == 0
    return time.perf_counter() - begun


def killed(begin, folder, kills, moment):
    """Kill a work so many times, in as many new folders as that takes; in each it goes on until it ends.

    Args:
        begin: begins the work in a folder, or goes on with it; returns the process.
        folder: where the folders are made.
        kills: how often a process is killed in the midst of the work.
        moment: waits, for a process and its folder, for the moment at which it is killed.

    Returns:
        Of each folder how often the work was killed in it.
    """
    deaths = {}
    while sum(deaths.values()) < kills:
        here = folder / f"killed-{len(deaths)}"
        here.mkdir()
        deaths[here], has_ended = 0, False
        while not has_ended:
            child = begin(here)
            if sum(deaths.values()) < kills:
                moment(child, here)
                child.kill()
            child.join()
            has_ended = child.exitcode != -signal.SIGKILL
            deaths[here] += not has_ended
        assert child.exitcode == 0, f"{here}: ended with {child.exitcode}"
    return deaths


def long_form(description, kill):
    """Be a program that kills more often: call what a test calls, with a folder, how often, and who chooses moments."""
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--kills", type=int, default=20)
    options.add_argument("--seed", type=int, default=0, help="of the moments")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as place:
        print(kill(Path(place), given.kills, random.Random(given.seed)))
