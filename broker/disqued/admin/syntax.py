"""Parses the syntax line of a command into the argument descriptions of COMMAND DOCS.

`queue body [REPLICATE n] [ASYNC]` becomes one description per argument, of the kinds that Redis 7 uses: `string` for
values (lower case), `pure-token` for literal words (upper case), `oneof` for alternatives (separated by `|`), `block`
for groups. Brackets mean optional, dots repeated.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

_PART: Final = re.compile(r" \| |\[|\]|\.\.\.|[^\s\[\]]+")
_OR: Final = " | "


@dataclass(frozen=True)
class Argument:
    """One argument, or several that stand together."""

    name: str
    kind: str
    token: str = ""
    """The word before the value; the word itself for a pure token."""
    optional: bool = False
    repeated: bool = False
    parts: tuple[Argument, ...] = ()


def read_syntax(line: str) -> tuple[Argument, ...]:
    """The arguments of a syntax line."""
    whole = _alternatives(_PART.findall(line)[::-1])
    return whole.parts if whole.kind == "block" and not whole.optional else (whole,)


def _alternatives(parts: list[str]) -> Argument:
    """Parse up to a closing bracket or the end, taking words from the end of `parts`."""
    choices = [_sequence(parts)]
    while parts and parts[-1] == _OR:
        parts.pop()
        choices.append(_sequence(parts))
    return choices[0] if len(choices) == 1 else _one_of(choices)


def _one_of(choices: list[Argument]) -> Argument:
    return Argument(choices[0].name, "oneof", parts=tuple(choices))


def _sequence(parts: list[str]) -> Argument:
    """Parse consecutive arguments, up to a bracket, a bar or the end."""
    found: list[Argument] = []
    while parts and parts[-1] not in {"]", _OR}:
        part = parts.pop()
        if part == "...":
            found[-1] = replace(found[-1], repeated=True)
        elif part == "[":
            inner = replace(_alternatives(parts), optional=True)
            parts.pop()
            if found and inner == replace(found[-1], optional=True, repeated=True):
                found[-1] = replace(found[-1], repeated=True)
            else:
                found.append(inner)
        else:
            words = [_word(word) for word in part.split("|")]
            found.append(words[0] if len(words) == 1 else _one_of(words))
    return _together(found)


def _together(found: list[Argument]) -> Argument:
    """Combine arguments: a single one stays, a token joins the value after it, others form a block."""
    if len(found) == 1:
        return found[0]
    if len(found) == 2 and found[0].kind == "pure-token" and found[1].kind == "string" and not found[1].optional:
        return replace(found[1], token=found[0].token)
    return Argument(found[0].name if found else "", "block", parts=tuple(found))


def _word(word: str) -> Argument:
    if word == word.upper():
        return Argument(word.lower(), "pure-token", token=word)
    return Argument(word, "string")
