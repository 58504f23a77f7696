"""``python -m socialgraph``: the command, see :mod:`socialgraph.cli`."""

from socialgraph.cli import main

if __name__ == "__main__":
    main()
