"""Argument parsing as in the original: `-h` is the host, and an error is one line on standard error.

This adapts `argparse`. Options cannot be abbreviated, so a new option breaks no script.
"""

from __future__ import annotations

import argparse
import math
import sys
from typing import TYPE_CHECKING, NoReturn, TypeVar

from disqued.cli.exits import Exit, exit_table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


Number = TypeVar("Number", int, float)


def at_least(kind: Callable[[str], Number], least: Number) -> Callable[[str], Number]:
    """Return a type for options: a finite number of that kind, at least `least`."""

    def parse(text: str) -> Number:
        try:
            number = kind(text)
        except ValueError:
            number = least - 1
        if not least <= number < math.inf:
            raise argparse.ArgumentTypeError(f"'{text}' is not a number >= {least}")
        return number

    return parse


class UsageError(Exception):
    """The command line is invalid. `disque` prints the text and exits with `Exit.USAGE`."""


class Parser(argparse.ArgumentParser):
    """A parser whose help is `--help`, or `-h` as the last word, and whose errors are `UsageError`."""

    def __init__(
        self,
        prog: str,
        usage: str | None,
        description: str,
        parents: Sequence[argparse.ArgumentParser],
        epilog: str = "",
    ) -> None:
        super().__init__(
            prog=prog,
            usage=usage,
            description=description,
            parents=parents,
            epilog=f"{epilog}exit status:\n{exit_table()}",
            add_help=False,
            allow_abbrev=False,
            exit_on_error=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        self.add_argument("--help", action="help", help="show this help and exit")

    def parse(self, arguments: Sequence[str], known: argparse.Namespace | None = None) -> argparse.Namespace:
        """Return the options, added to those in `known`; `--help` prints the help and exits.

        Raises:
            UsageError: an option is unknown, or its value is invalid.
        """
        try:
            options, rest = self.parse_known_args(arguments, known)
        except argparse.ArgumentError as error:
            if error.argument_name is None:  # a missing argument, in newer versions of argparse
                self.error(error.message)
            name = error.argument_name.split("/", 1)[0]
            if name == "-h" and arguments[-1] == "-h":
                self.print_help()
                sys.exit(Exit.OK)
            raise UsageError(f"Unrecognized option or bad number of args for: '{name}' ({error.message})") from error
        if rest:
            raise UsageError(f"Unrecognized option or bad number of args for: '{rest[0]}'")
        return options

    def error(self, message: str) -> NoReturn:
        """Raise an error that belongs to no option; called by `argparse`."""
        raise UsageError(f"{self.prog}: {message}")
