"""Argument parsing as the original has it: `-h` is the host, and a mistake is one line on stderr.

`argparse` does the work; this changes what it says. Options are never abbreviated, so adding one breaks no script.
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
    """A type for options: a finite number of that kind, not less than `least`."""

    def parse(text: str) -> Number:
        try:
            number = kind(text)
        except ValueError:
            number = least - 1
        if not least <= number < math.inf:
            raise argparse.ArgumentTypeError(f"'{text}' is not a number from {least} up")
        return number

    return parse


class UsageError(Exception):
    """The command line makes no sense; the text is shown, then `disque` ends with `Exit.USAGE`."""


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
        self.add_argument("--help", action="help", help="show this text and exit")

    def parse(self, arguments: Sequence[str], known: argparse.Namespace | None = None) -> argparse.Namespace:
        """The options, added to those `known` before; ends the process with the help text when it was asked for.

        Raises:
            UsageError: there is something that is no option, or one has no good value.
        """
        try:
            options, rest = self.parse_known_args(arguments, known)
        except argparse.ArgumentError as error:
            if error.argument_name is None:  # what is missing, as newer versions of argparse report it
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
        """What `argparse` calls for mistakes that belong to no option."""
        raise UsageError(f"{self.prog}: {message}")
