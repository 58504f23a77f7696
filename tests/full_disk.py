"""A disk that fills up."""

import resource
from contextlib import contextmanager


@contextmanager
def files_no_larger_than(size):
    """The system refuses to let a file grow further, as it does on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
