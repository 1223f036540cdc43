"""Load the configuration: first the file, then the lines of the command line, which override it.

Loading stops at the first error; the server prints its `fatal_text` and does not start. The lines of the command line
are numbered after those of the file.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from disqued.config.config import Config
from disqued.config.kinds import BAD_DIRECTIVE, BadValueError, Text, decode, encode
from disqued.config.option import REDACTED, Option
from disqued.config.renames import rename_commands
from disqued.resp.words import split_words

DEEPEST_INCLUDE = 16
BLANKS = " \t\r\n"


class ConfigError(Exception):
    """A configuration line is invalid. `file` is the included file that contains it, None for the main file."""

    def __init__(self, line_number: int, line: str, message: str, file: str | None = None) -> None:
        super().__init__(message)
        self.line_number = line_number
        self.line = line
        self.message = message
        self.file = file


def fatal_text(error: ConfigError) -> str:
    """The text that the server prints to standard error when its configuration is invalid."""
    where = "" if error.file is None else f" of '{error.file}'"
    return (
        "\n*** FATAL CONFIG FILE ERROR ***\n"
        f"Reading the configuration file, at line {error.line_number}{where}\n"
        f">>> '{error.line}'\n"
        f"{error.message}\n"
    )


def load(
    text: str,
    overrides: Sequence[str],
    read_include: Callable[[str], str],
    commands: Collection[bytes] | None = None,
    directives: tuple[Option[Any], ...] = (),
) -> Config:
    """Load the text of a file and then the lines of a command line. Raises ConfigError.

    `read_include` returns the text of an included file or raises OSError; the path is relative to the value that `dir`
    has at that line. Texts are UTF-8, with surrogate escapes for undecodable bytes. If `commands` has the names of all
    commands, `rename-command` lines are checked against them. `directives` are those that are not in the table.
    """
    reader = _Reader(Config(directives), read_include, commands)
    if overrides:
        text = "\n".join([text, *overrides])
    reader.read(text.split("\n"), None, 0)
    return reader.config


@dataclass(frozen=True, slots=True)
class _Reader:
    """Applies lines to a configuration."""

    config: Config
    read_include: Callable[[str], str]
    commands: Collection[bytes] | None

    def read(self, lines: Iterable[str], file: str | None, depth: int) -> None:
        """Apply all lines of one file."""
        for number, untrimmed in enumerate(lines, 1):
            line = untrimmed.strip(BLANKS)
            if not line or line.startswith("#"):
                continue
            try:
                self._apply(line, depth)
            except BadValueError as error:
                raise ConfigError(number, self._shown(line), str(error), file) from None

    def _shown(self, line: str) -> str:
        """The line as an error shows it: without the value of a secret directive."""
        name, blank, _ = line.replace("\t", " ").partition(" ")
        option = self.config.option(name.strip("\"'").lower())
        return f"{name} {REDACTED}" if blank and option is not None and option.secret else line

    def _apply(self, line: str, depth: int) -> None:
        words = split_words(encode(line))
        if words is None:
            raise BadValueError("Unbalanced quotes in configuration line")
        if not words:
            return
        name = decode(words[0]).lower()
        if name == "include":
            self._include(Text().read(words[1:]), depth + 1)
            return
        option = self.config.option(name)
        if option is None or not option.in_file:
            raise BadValueError(BAD_DIRECTIVE)
        before = getattr(self.config, option.attribute)
        self.config.assign(option.attribute, option.kind.merge(before, option.kind.read(words[1:])))
        if name == "rename-command" and self.commands is not None:
            rename_commands(self.commands, self.config.rename_command)

    def _include(self, name: str, depth: int) -> None:
        if depth > DEEPEST_INCLUDE:
            raise BadValueError(
                f"'{name}' is included more than {DEEPEST_INCLUDE} levels deep; check whether it includes itself"
            )
        path = posixpath.join(self.config.dir, name)
        try:
            text = self.read_include(path)
        except OSError as error:
            raise BadValueError(f"Can't open the included file '{path}': {error.strerror or error}") from None
        self.read(text.split("\n"), path, depth)
