"""What can go wrong, said in one line that tells what to do."""


class SocialgraphError(Exception):
    """Base of every error this package raises on purpose."""


class InputError(SocialgraphError, ValueError):
    """Data that cannot be used. The message names the file and line, or the id."""


class OptionError(SocialgraphError, ValueError):
    """An option out of its range. The message says the range and what came."""


class CheckpointError(SocialgraphError, ValueError):
    """A model folder that cannot be used. The message names the file or the key."""
