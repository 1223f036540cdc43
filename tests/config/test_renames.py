"""What rename-command lines do to the names of commands."""

from __future__ import annotations

import pytest

from disqued.config import rename_commands
from disqued.config.kinds import BadValueError

NAMES = (b"addjob", b"getjob", b"debug")


def test_a_renamed_command_has_its_new_name_only() -> None:
    assert rename_commands(NAMES, [(b"GetJob", b"Take")]) == {
        b"addjob": b"addjob",
        b"take": b"getjob",
        b"debug": b"debug",
    }


def test_an_empty_name_removes_the_command() -> None:
    assert rename_commands(NAMES, [(b"debug", b"")]) == {b"addjob": b"addjob", b"getjob": b"getjob"}


def test_a_command_may_get_the_name_of_one_that_moved_away() -> None:
    renames = [(b"debug", b"x"), (b"getjob", b"debug")]
    assert rename_commands(NAMES, renames) == {b"addjob": b"addjob", b"x": b"debug", b"debug": b"getjob"}


@pytest.mark.parametrize("renames", [[(b"nosuch", b"x")], [(b"debug", b"x"), (b"debug", b"y")]])
def test_an_unknown_name_cannot_be_renamed(renames: list[tuple[bytes, bytes]]) -> None:
    with pytest.raises(BadValueError, match="No such command in rename-command"):
        rename_commands(NAMES, renames)


def test_a_name_in_use_cannot_be_given() -> None:
    with pytest.raises(BadValueError, match="Target command name already exists"):
        rename_commands(NAMES, [(b"debug", b"GETJOB")])
