"""How a model learns: the loop, its loss, checkpoints, and what is measured on the way."""
