"""Every option of the commands: what it is for, and what it may be. Default values are in conf/ and in the recipes.

A class is a group of options (:mod:`.groups`, :mod:`.commands`): each is a type hint that says what its value must be
(:mod:`.kinds`), and a line that says what it is for. A configuration is held against them before anything heavy is
imported; ``--help`` (:mod:`.help`) and docs/options.md are written from them. Options of classes (``edges``,
``partition``, ``model``, ...) are those of their constructors, which say themselves what is wrong.
"""
