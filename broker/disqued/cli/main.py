"""The entry point of `disque`: reads the options and starts what they ask for.

`disque [options] [command [argument ...]]`. Words that name a view (`disque top`) go to its module, all other commands
to the server, none starts the interactive mode. Modules are imported when they are needed: a shell script calls
`disque` in a loop, so the way to a one-shot command stays short.
"""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

from disqued import __version__
from disqued.cli.arguments import Parser, UsageError, at_least
from disqued.cli.connection import ConnectionFailedError, ConnectionLostError, RefusedError
from disqued.cli.endpoint import choose_endpoint, endpoint_options
from disqued.cli.exits import Exit
from disqued.cli.oneshot import Style, run_command
from disqued.cli.render import Form
from disqued.resp.replies import ReplyFormatError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

VIEWS = {
    "top": "live view of queues, rates and clients",
    "nodes": "table of the cluster's nodes",
    "queues": "table of queues",
    "jobs": "table of jobs",
    "peek": "waiting jobs of a queue with their bodies",
    "console": "open the page of a node in the browser",
    "aof": "look into append only files",
    "bench": "measure the server",
    "help": "explain commands",
}
"""Subcommands that are not commands of the server, each a module `disqued.cli.views.NAME` with `run`."""

MODES = {
    "latency": "latency",
    "latency_history": "latency",
    "intrinsic_latency": "intrinsic",
    "stat": "stat",
    "pipe": "pipe",
}
"""Options that replace the command, and their modules in `disqued.cli.modes`."""

EXTRAS = {"rich": "cli", "prompt_toolkit": "cli", "mypy_extensions": "server", "sortedcontainers": "server"}
"""Packages that only some uses need, and the extra that installs them. The command table is the server's."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `disque` with these arguments (default: those of the process) and return its exit status."""
    words = sys.argv[1:] if arguments is None else arguments
    return guarded(lambda: start(words))


def guarded(work: Callable[[], Exit]) -> int:
    """The exit status of a program that does this work; what goes wrong is told on standard error."""
    try:
        return work()
    except UsageError as error:
        return _complain(str(error), Exit.USAGE)
    except RefusedError as error:
        return _complain(str(error), Exit.REFUSED)
    except (ConnectionFailedError, ConnectionLostError, ReplyFormatError) as error:
        return _complain(str(error), Exit.CONNECTION)
    except ModuleNotFoundError as error:
        extra = EXTRAS.get(error.name or "")
        if extra is None:
            raise
        return _complain(f"This needs the package '{error.name}': pip install 'disqued[{extra}]'", Exit.USAGE)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has seen enough; the interpreter must not fail once more when it flushes at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.OK


def start(arguments: Sequence[str]) -> Exit:
    """What `main` does, with exceptions for everything that is not a reply."""
    options = _parser().parse(arguments)
    try:
        endpoint = choose_endpoint(options)
    except ValueError as error:
        raise UsageError(str(error)) from error
    for option, mode in MODES.items():
        if getattr(options, option):
            return _call(f"disqued.cli.modes.{mode}", endpoint, options)
    if not options.command:
        return _call("disqued.cli.repl", endpoint, style_of(options))
    if options.command[0] in VIEWS:
        return _call(f"disqued.cli.views.{options.command[0]}", options)
    words = [os.fsencode(word) for word in options.command]
    if options.last_from_stdin:
        words.append(sys.stdin.buffer.read())
    repeat = 1 if options.repeat is None else options.repeat
    return run_command(endpoint, words, style_of(options), repeat, options.interval_s or 0.0)


def style_of(options: argparse.Namespace) -> Style:
    """The form asked for; else readable on a terminal and raw into a pipe."""
    terminal = sys.stdout.isatty() or "FAKETTY" in os.environ
    return Style(options.form or (Form.READABLE if terminal else Form.RAW), os.fsencode(options.delimiter))


def _call(module: str, *arguments: object) -> Exit:
    status: Exit = import_module(module).run(*arguments)
    return status


def _complain(text: str, status: Exit) -> Exit:
    sys.stderr.write(text + "\n")
    return status


def _parser() -> Parser:
    views = "\n".join(f"  {name:<10} {summary}" for name, summary in VIEWS.items())
    parser = Parser(
        "disque",
        "disque [options] [command [argument ...]]",
        "Talks to a Disque server. Without a command: interactive mode, or the commands on standard input.",
        [endpoint_options()],
        f"subcommands, each with its own --help; any other command goes to the server:\n{views}\n\n",
    )
    output = parser.add_argument_group("output of commands").add_argument
    for form, explanation in (
        (Form.RAW, "values as they are (default into a pipe)"),
        (Form.READABLE, "types and structure visible (default on a terminal)"),
        (Form.CSV, "one CSV record per reply"),
        (Form.JSON, "one line of JSON per reply"),
    ):
        flag = "--no-raw" if form is Form.READABLE else f"--{form.value}"
        output(flag, dest="form", action="store_const", const=form, help=explanation)
    output("-d", dest="delimiter", default="\n", help="between array elements in raw output (default: newline)")
    command = parser.add_argument_group("running commands").add_argument
    command(
        "-r",
        dest="repeat",
        type=at_least(int, -1),
        metavar="N",
        help="run the command N times (default 1; -1: for ever)",
    )
    command(
        "-i",
        dest="interval_s",
        type=at_least(float, 0.0),
        metavar="SECONDS",
        help="pause between runs, or between lines of a mode",
    )
    command("-x", dest="last_from_stdin", action="store_true", help="read the last argument from standard input")
    modes = parser.add_argument_group("modes instead of a command").add_argument
    modes("--latency", action="store_true", help="time PING for ever: min, max, avg in ms")
    modes("--latency-history", action="store_true", help="the same, with a new line every -i seconds (default 15)")
    modes("--stat", action="store_true", help="memory, clients and requests every -i seconds (default 1)")
    modes("--pipe", action="store_true", help="send raw protocol from standard input, count replies and errors")
    modes("--pipe-timeout", dest="pipe_timeout_s", type=at_least(float, 0.0), default=30.0, metavar="SECONDS",
          help="give up when no reply comes for so long (default 30, 0: never)")  # fmt: skip
    modes("--intrinsic-latency", dest="intrinsic_latency", type=at_least(float, 0.0), metavar="SECONDS",
          help="measure how long this machine keeps a busy process waiting; needs no server")  # fmt: skip
    parser.add_argument("-v", "--version", action="version", version=f"disque {__version__}", help="show the version")
    parser.add_argument("command", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
