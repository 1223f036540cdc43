"""What `rename-command` lines make of the names of commands."""

from __future__ import annotations

from collections.abc import Iterable

from disqued.config.kinds import BadValueError


def rename_commands(names: Iterable[bytes], renames: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Every name that can be called, in lower case, with the name its command had before.

    Pairs (old, new) apply one after the other, an empty new name removes the command. Raises BadValueError when the old
    name is unknown or the new one taken.
    """
    originals = {name.lower(): name for name in names}
    for old, new in renames:
        original = originals.pop(old.lower(), None)
        if original is None:
            raise BadValueError("No such command in rename-command")
        if new.lower() in originals:
            raise BadValueError("Target command name already exists")
        if new:
            originals[new.lower()] = original
    return originals
