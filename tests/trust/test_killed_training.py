"""Training killed at random moments ends as if nothing had happened; the long form is the program itself."""

import os

from kill_training import main


def test_a_training_killed_four_times_ends_with_the_same_weights_and_log(tmp_path, capsys, record_property):
    main(kills=4, seed=int.from_bytes(os.urandom(2)), folder=tmp_path)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("4 kills, ")
    record_property("told", f"a training: {last}")
