"""The server's command line: `disque-server [--nodes N] [CONFIG-FILE | -] [--directive value ...]...`.

Each `--name value ...` becomes a configuration line, which is read after the file. Values are quoted, so they may
contain any characters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from disqued.config.kinds import encode
from disqued.resp.words import quote_word

Action = Literal["serve", "version", "help", "test-memory"]

_ACTIONS: dict[str, Action] = {"-v": "version", "--version": "version", "-h": "help", "--help": "help"}


@dataclass(frozen=True, slots=True)
class ServerArguments:
    """A parsed command line. `config_path` is `-` for standard input, None if no file is named."""

    action: Action = "serve"
    config_path: str | None = None
    lines: tuple[str, ...] = ()
    """Configuration lines that override those of the file."""
    nodes: int | None = None
    """How many nodes to run; None for a single one, 0 if the number after `--nodes` is missing or not a number."""
    test_megabytes: int | None = None
    """Megabytes for `--test-memory`; None if the amount is missing or not a number."""


def parse_arguments(argv: Sequence[str]) -> ServerArguments:
    """Parse the words after the name of the program. Invalid directives are reported when the lines are loaded."""
    first = argv[0] if argv else ""
    if first in _ACTIONS:
        return ServerArguments(_ACTIONS[first])
    if first == "--test-memory":
        return ServerArguments("test-memory", test_megabytes=_number(argv[1]) if len(argv) == 2 else None)
    if first == "--nodes":
        return replace(parse_arguments(argv[2:]), nodes=(_number(argv[1]) if len(argv) > 1 else None) or 0)
    if not first or first.startswith("--"):
        return ServerArguments(lines=_lines(argv))
    return ServerArguments(config_path=first, lines=_lines(argv[1:]))


def _number(word: str) -> int | None:
    return int(word) if word.isascii() and word.isdigit() else None


def _lines(argv: Sequence[str]) -> tuple[str, ...]:
    """One line for each word that begins with `--`. Words before the first one form a line, which `load` refuses."""
    lines: list[str] = []
    for word in argv:
        if word.startswith("--"):
            lines.append(word[2:])
        else:
            quoted = quote_word(encode(word)).decode("ascii")
            lines[-1:] = [f"{lines[-1]} {quoted}" if lines else quoted]
    return tuple(lines)
