"""Options as one types them to Hydra. Nothing slow to import: a command begins with it."""


def quoted(value: object) -> str:
    """Return a value as Hydra's command line takes it, whatever is in it; only a text is quoted."""
    if not isinstance(value, str):
        return str(value)
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
