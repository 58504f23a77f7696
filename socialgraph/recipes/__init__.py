"""Every system as a file.

What it is made of: :mod:`.compose`. How that becomes objects: :mod:`.build`. Classes by their names: :mod:`.classes`.

The files are a Hydra configuration. ``options.yaml`` holds what all recipes share; each folder is a group: ``recipe``,
and ``model``, ``edges``, ``partition`` and ``training``, of which recipes are composed.
"""
