"""The names of commands after all `rename-command` lines."""

from __future__ import annotations

from collections.abc import Iterable

from disqued.config.kinds import BadValueError


def rename_commands(names: Iterable[bytes], renames: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Map every callable name, in lower case, to the original name of its command.

    The pairs (old, new) apply in order; an empty new name removes the command. Raises BadValueError if the old name is
    unknown or the new name is taken.
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
