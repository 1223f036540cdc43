"""Parses the syntax line of a command, and finds what can follow the words typed so far.

Syntax lines come from the command table, for example `queue body ms-timeout [DELAY sec] [ASYNC]`. Words in capitals are
literal, other words stand for values. Brackets mark optional parts, `a|b` is a choice of words, `...` means that the
part before it can be repeated, and ` | ` separates alternatives, which may be enclosed in one pair of brackets. The
interactive mode uses syntax lines for completion and hints. Words that do not match are ignored: the server refuses
them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TOKEN = re.compile(r"\[|\]|[^\s\[\]]+")
_BAR = "|"
_AGAIN = "..."


@dataclass(frozen=True)
class Part:
    """A required word, or all words between a pair of brackets."""

    words: tuple[str, ...]
    optional: bool = False

    @property
    def repeats(self) -> bool:
        """Whether the part can be repeated."""
        return self.words[-1] == _AGAIN

    @property
    def literals(self) -> tuple[str, ...]:
        """The literals for the first word; none if it stands for a value."""
        return literals(self.words[0])

    def __str__(self) -> str:
        text = " ".join(self.words)
        return f"[{text}]" if self.optional else text


def literals(word: str) -> tuple[str, ...]:
    """Return the literals of a word: `yes|no` and `ASYNC` are literal, `queue` stands for a value."""
    return tuple(word.split("|")) if "|" in word or word.isupper() else ()


def parse_syntax(line: str) -> list[list[Part]]:
    """Parse a syntax line into its alternatives, each a list of parts."""
    tokens: list[str] = _TOKEN.findall(line)
    if _is_wrapped(tokens):
        tokens = tokens[1:-1]
    alternatives: list[list[Part]] = [[]]
    bracketed: list[str] | None = None
    for token in tokens:
        parts = alternatives[-1]
        match token:
            case "[":
                bracketed = []
            case "]":
                parts.append(Part(tuple(bracketed or ()), optional=True))
                bracketed = None
            case _ if bracketed is not None:
                bracketed.append(token)
            case "|":
                alternatives.append([])
            case "...":
                parts.append(Part((*parts.pop().words, _AGAIN), optional=True))
            case _:
                parts.append(Part((token,)))
    return alternatives


def _is_wrapped(tokens: list[str]) -> bool:
    """Whether one pair of brackets encloses the whole line, with alternatives or other brackets inside."""
    depths = [tokens[: end + 1].count("[") - tokens[: end + 1].count("]") for end in range(len(tokens))]
    return bool(depths) and all(depths[:-1]) and (_BAR in tokens or tokens.count("[") > 1)


@dataclass(frozen=True)
class Rest:
    """What can still follow: missing values of the last option, then parts."""

    values: tuple[str, ...]
    parts: tuple[Part, ...]

    def __str__(self) -> str:
        return " ".join([*self.values, *map(str, self.parts)])

    def next_words(self) -> dict[str, str]:
        """Return the possible next words, literals or names of values, each with what follows it."""
        if self.values:
            return {self.values[0]: " ".join(self.values[1:])}
        return {part.words[0]: " ".join(part.words[1:]) for part in _reachable(list(self.parts))}


def remaining(parts: list[Part], typed: list[str]) -> Rest | None:
    """Return what can follow the words `typed`; None if they do not match this alternative."""
    if typed and parts and not parts[0].optional and parts[0].literals and not _stands_for(parts[0], typed[0]):
        return None
    left = list(parts)
    values: tuple[str, ...] = ()
    for word in typed:
        if values:
            values = values[1:]
            continue
        reachable = _reachable(left)
        taken = next((part for part in reachable if _stands_for(part, word)), None) or next(
            (part for part in reachable if not part.literals), None
        )
        if taken is None:
            continue
        if taken.literals:
            values = tuple(value for value in taken.words[1:] if value != _AGAIN)
        if not taken.optional:
            left = left[left.index(taken) + 1 :]
        elif not taken.repeats:
            left.remove(taken)
    return Rest(values, tuple(left))


def _reachable(parts: list[Part]) -> list[Part]:
    """The parts that the next word can belong to: leading optional parts and the first required one."""
    required = next((i for i, part in enumerate(parts) if not part.optional), len(parts))
    return parts[: required + 1]


def _stands_for(part: Part, word: str) -> bool:
    return word.upper() in {literal.upper() for literal in part.literals}


def continuations(line: str, typed: list[str]) -> list[Rest]:
    """Return what can follow `typed`, one entry for each alternative that matches."""
    rests = (remaining(parts, typed) for parts in parse_syntax(line))
    return [rest for rest in rests if rest is not None]
