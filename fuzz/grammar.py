"""Makes requests with extreme arguments from the syntax lines of the command table.

A new command, subcommand or option is covered as soon as its syntax line names it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from disqued.admin.syntax import Argument, read_syntax
from disqued.config.options import OPTIONS
from disqued.core.commands.command import Command

EXCLUDED: Final = frozenset({"shutdown", "debug"})
"""Commands that stop the node or hold it on purpose."""

_NUMBERS: Final = (
    *(b"0", b"1", b"-1", b"2", b"10", b"100", b"1000", b"65535", b"65536", b"1000000"),
    *(b"2147483647", b"2147483648", b"4294967295", b"4294967296", b"9223372036854775807", b"-9223372036854775808"),
    *(b"9223372036854775808", b"18446744073709551615", b"1e3", b"0x10", b" 1", b"+1", b"1.5", b"nan", b""),
)
_QUEUES: Final = (b"mail", b"a", b"b", b"\xff\x00\r\n", b"caf\xc3\xa9", b"", b"*", b"q" * 300)
_WORDS: Final = (
    b"yes",
    b"no",
    b"all",
    b"none",
    b"*",
    b"127.0.0.1",
    b"::1",
    b"default",
    b"x" * 200,
    b"\x00\xff",
    b"%s%n",
)
_PATTERN: Final = b"*a?[^b]\\*"
_SIZES: Final = (0, 1, 15, 255, 4 << 10, 64 << 10)
_LONG: Final = (1 << 20, 4 << 20)
_REPEATS: Final = (2, 3, 5, 100)
_MANY: Final = (3000, 30_000)
_RARELY: Final = 0.004
_NOW_AND_THEN: Final = 0.05


class Grammar:
    """A stream of requests. Equal seeds and equal job IDs make equal requests."""

    def __init__(self, commands: Sequence[Command], chance: Random, jobs: Sequence[bytes]) -> None:
        self._chance = chance
        self._jobs = jobs
        self._syntax = [(c.name.encode(), read_syntax(c.syntax)) for c in commands if c.name not in EXCLUDED]
        self._values: dict[str, Callable[[], bytes]] = {
            "queue": self._queue,
            "job-id": self._job_id,
            "body": self._bytes,
            "name": self._name,
            "value": self._value,
            "pattern": self._long_pattern,
        }

    def request(self) -> list[bytes]:
        """The words of the next request."""
        name, arguments = self._chance.choice(self._syntax)
        words = [name]
        for argument in arguments:
            self._append(words, argument)
        if self._chance.random() < _NOW_AND_THEN:  # a word too few, too many, or another one
            at = self._chance.randrange(len(words)) + 1
            words[at : at + self._chance.randrange(2)] = [self._value()] * self._chance.randrange(2)
        return words

    def _append(self, words: list[bytes], argument: Argument) -> None:
        """Append the words of one argument, or leave it out if it is optional."""
        chance = self._chance
        if argument.optional and chance.random() < 0.5:
            return
        for _ in range(self._times() if argument.repeated else 1):
            if argument.kind == "oneof":
                self._append_one(words, chance.choice(argument.parts))
            elif argument.kind == "block":
                for part in argument.parts:
                    self._append(words, part)
            else:
                if argument.token:
                    words.append(argument.token.encode())
                if argument.kind == "string":
                    words.append(self._values.get(argument.name, self._value)())

    def _append_one(self, words: list[bytes], choice: Argument) -> None:
        """Append one of several alternatives; `yes` in `yes|no` is the word itself, `section` may stand for a value."""
        if choice.kind == "string" and not choice.token and self._chance.random() < 0.7:
            words.append(choice.name.encode())
        else:
            self._append(words, choice)

    def _times(self) -> int:
        """How often to repeat an argument: mostly once, rarely many thousand times."""
        dice = self._chance.random()
        if dice < _RARELY:
            return self._chance.choice(_MANY)
        return self._chance.choice(_REPEATS) if dice < 0.3 else 1

    def _queue(self) -> bytes:
        dice = self._chance.random()
        if dice < _RARELY:
            return self._bytes()
        return b"q%d" % self._chance.randrange(1 << 40) if dice < 0.3 else self._chance.choice(_QUEUES)

    def _job_id(self) -> bytes:
        """The ID of a job of the node, an invented one, or no ID."""
        dice = self._chance.random()
        if dice < 0.6 and self._jobs:
            return self._chance.choice(self._jobs)
        if dice < 0.9:
            return b"D-%08x-%024d-%04x" % (
                self._chance.getrandbits(32),
                self._chance.getrandbits(60),
                self._chance.getrandbits(16),
            )
        return self._value()

    def _name(self) -> bytes:
        """A directive, a command, or another name."""
        dice = self._chance.random()
        if dice < 0.5:
            return self._chance.choice(OPTIONS).name.encode()
        return self._chance.choice(self._syntax)[0] if dice < 0.8 else self._value()

    def _long_pattern(self) -> bytes:
        return _PATTERN * self._chance.choice((1, 10, 1000) if self._chance.random() < _NOW_AND_THEN else (1, 3))

    def _bytes(self) -> bytes:
        sizes = _LONG if self._chance.random() < _RARELY else _SIZES
        return self._chance.randbytes(8) * (self._chance.choice(sizes) // 8)

    def _value(self) -> bytes:
        dice = self._chance.random()
        if dice < 0.6:
            return b"%d" % self._chance.randrange(200) if dice < 0.3 else self._chance.choice(_NUMBERS)
        return self._chance.choice(_WORDS) if dice < 0.95 else self._bytes()
