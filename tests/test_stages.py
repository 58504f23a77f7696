from socialgraph.recipes.stages import steps_taken


def test_steps_of_all_stages_are_counted():
    log = [{"step": 3, "loss": 1.0}, {"step": 5, "loss": 0.5}, {"note": "no step"}]
    assert steps_taken(log) == 5
    assert steps_taken([{"stage": "ranker", **log[1]}, {"stage": "student", "step": 2}, log[2]]) == 7
    assert steps_taken([]) == 0
