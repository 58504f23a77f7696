"""Every system as a file: what it is made of (:mod:`.compose`), and how that becomes objects (:mod:`.build`).

The files are a Hydra configuration. ``options.yaml`` holds what all recipes share; each folder is a group: ``recipe``,
and ``model``, ``edges``, ``partition`` and ``training``, of which recipes are composed.
"""
