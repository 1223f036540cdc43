"""The help on commands, from the command table of the node."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from disqued.core.commands.command import Command

BUILT_IN = {
    "help": "help [command | @group]",
    "?": "alias of help",
    "connect": "connect host port",
    "clear": "clear the screen",
    "exit": "exit, like quit and Ctrl-D",
    "quit": "exit",
}
"""Commands of the interactive mode that are not sent to the server."""


@cache
def command_table() -> dict[str, Command]:
    """Return the commands by name, in lower case."""
    from disqued.node import ROOMS  # noqa: PLC0415  imports the whole broker, which only help and completion need

    return {command.name: command for command in sorted(ROOMS.commands, key=lambda command: command.name)}


def groups() -> dict[str, list[Command]]:
    """Return the commands by group, both sorted by name."""
    table = command_table().values()
    return {group: [row for row in table if row.group == group] for group in sorted({row.group for row in table})}


def explain(topic: str) -> str | None:
    """Return the help on a command or an `@group`, on all groups if `topic` is empty; None if there is none."""
    if not topic:
        return _overview()
    if topic.startswith("@"):
        rows = groups().get(topic[1:].lower())
        return None if rows is None else "\n".join(_short(row) for row in rows)
    row = command_table().get(topic.lower())
    return None if row is None else _long(row)


def _overview() -> str:
    names = (f"  @{group:<12}{' '.join(row.name for row in rows)}" for group, rows in groups().items())
    built_in = (f"  {name:<13}{text}" for name, text in BUILT_IN.items())
    return "\n".join(
        [
            "Commands by group; see 'help <command>' or 'help @<group>':",
            *names,
            "",
            "Commands of the interactive mode:",
            *built_in,
            "  <n> command  run the command n times",
        ]
    )


def _long(row: Command) -> str:
    lines = [f"  {row.name.upper()} {row.syntax}".rstrip(), f"  {row.summary}"]
    facts = {"group": row.group, "cost": row.complexity, "since": row.since, "flags": " ".join(row.flags)}
    return "\n".join(lines + [f"  {name + ':':<7}{value}" for name, value in facts.items() if value])


def _short(row: Command) -> str:
    return f"  {row.name.upper()} {row.syntax}".rstrip() + f"\n      {row.summary}"
