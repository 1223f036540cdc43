"""The entry point of `disque`: parses the options and dispatches.

`disque [options] [command [argument ...]]`. A command that names a view (`disque top`) runs the module of that view;
other commands are sent to the server. Without a command the interactive mode starts. Modules are imported when they are
needed, because shell scripts call `disque` in loops, so a single command must start fast.
"""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

from disqued import __version__
from disqued.cli.arguments import Parser, UsageError, at_least
from disqued.cli.connection import CommandRefusedError, ConnectionFailedError, ConnectionLostError
from disqued.cli.endpoint import choose_endpoint, endpoint_options
from disqued.cli.exits import Exit, guarded
from disqued.cli.oneshot import Style, run_command
from disqued.cli.render import Form
from disqued.resp.replies import ReplyFormatError

if TYPE_CHECKING:
    from collections.abc import Sequence

VIEWS = {
    "top": "show a live view of queues, rates and clients",
    "nodes": "list the nodes of the cluster",
    "repair": "show lost copies of jobs on all nodes, or look for them",
    "queues": "list queues",
    "ordered": "list ordered queues, found their catalog, make or remove one",
    "count": "count the jobs of a queue on all nodes",
    "purge": "delete the jobs of a queue on all nodes",
    "settings": "list settings of queues",
    "schedules": "list schedules with their last and next runs",
    "jobs": "list jobs",
    "dead": "count or list dead letters of the cluster",
    "wait": "wait until jobs have ended",
    "job": "show a job on all nodes, or how it ended",
    "log": "show the progress log of a job",
    "tree": "draw a job with its parents and children",
    "peek": "show queued jobs with their bodies",
    "console": "open the web console of a node",
    "aof": "inspect append-only files",
    "bench": "benchmark the server",
    "help": "show help on commands",
}
"""Subcommands that are not commands of the server, each a module `disqued.cli.views.NAME` with `run`."""

ALIASES = {"run-now": "enqueue", "cancel": "fastack"}
"""Names that people look for, and the commands of the server that do it."""

MODES = {
    "latency": "latency",
    "latency_history": "latency",
    "intrinsic_latency": "intrinsic",
    "stat": "stat",
    "pipe": "pipe",
}
"""Options that select a mode instead of a command, and their modules in `disqued.cli.modes`."""

ERRORS = {
    UsageError: Exit.USAGE,
    CommandRefusedError: Exit.REFUSED,
    ConnectionFailedError: Exit.CONNECTION,
    ConnectionLostError: Exit.CONNECTION,
    ReplyFormatError: Exit.CONNECTION,
}
"""Errors that `disque` reports in one line, and their exit statuses."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `disque` with these arguments (default: those of the process) and return its exit status."""
    words = sys.argv[1:] if arguments is None else arguments
    return guarded(lambda: start(words), ERRORS)


def start(arguments: Sequence[str]) -> Exit:
    """Like `main`, but raises exceptions for errors other than error replies."""
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
    words[0] = os.fsencode(ALIASES.get(options.command[0], options.command[0]))
    if options.last_from_stdin:
        words.append(sys.stdin.buffer.read())
    repeat = 1 if options.repeat is None else options.repeat
    return run_command(endpoint, words, style_of(options), repeat, options.interval_s or 0.0)


def style_of(options: argparse.Namespace) -> Style:
    """Return the requested output format; the default is readable on a terminal and raw in a pipe."""
    terminal = sys.stdout.isatty() or "FAKETTY" in os.environ
    return Style(options.form or (Form.READABLE if terminal else Form.RAW), os.fsencode(options.delimiter))


def _call(module: str, *arguments: object) -> Exit:
    status: Exit = import_module(module).run(*arguments)
    return status


def _parser() -> Parser:
    rows = VIEWS | {name: f"the command '{command}', with IDs of jobs" for name, command in ALIASES.items()}
    views = "\n".join(f"  {name:<10} {summary}" for name, summary in rows.items())
    parser = Parser(
        "disque",
        "disque [options] [command [argument ...]]",
        "Sends commands to a Disque server. Without a command: interactive mode, or commands from standard input.",
        [endpoint_options()],
        f"subcommands (see 'disque SUBCOMMAND --help'); all other commands are sent to the server:\n{views}\n\n",
    )
    output = parser.add_argument_group("output format").add_argument
    for form, explanation in (
        (Form.RAW, "raw values (default if standard output is not a terminal)"),
        (Form.READABLE, "formatted values with their types (default on a terminal)"),
        (Form.CSV, "CSV, one record per reply"),
        (Form.JSON, "JSON, one line per reply"),
    ):
        flag = "--no-raw" if form is Form.READABLE else f"--{form.value}"
        output(flag, dest="form", action="store_const", const=form, help=explanation)
    output(
        "-d", dest="delimiter", default="\n", help="delimiter between array elements in raw output (default: newline)"
    )
    command = parser.add_argument_group("execution").add_argument
    command(
        "-r",
        dest="repeat",
        type=at_least(int, -1),
        metavar="N",
        help="run the command N times (default 1; -1: until interrupted)",
    )
    command(
        "-i",
        dest="interval_s",
        type=at_least(float, 0.0),
        metavar="SECONDS",
        help="wait between runs, or between the lines of a mode",
    )
    command(
        "-x",
        dest="last_from_stdin",
        action="store_true",
        help="read the last argument of the command from standard input",
    )
    modes = parser.add_argument_group("modes (instead of a command)").add_argument
    modes("--latency", action="store_true", help="measure the latency of PING continuously: min, max, avg in ms")
    modes(
        "--latency-history", action="store_true", help="like --latency, with a new line every -i seconds (default 15)"
    )
    modes("--stat", action="store_true", help="print memory, clients and requests every -i seconds (default 1)")
    modes("--pipe", action="store_true", help="send raw protocol from standard input and count the replies")
    modes("--pipe-timeout", dest="pipe_timeout_s", type=at_least(float, 0.0), default=30.0, metavar="SECONDS",
          help="time out when no reply arrives for this long (default 30; 0: never)")  # fmt: skip
    modes("--intrinsic-latency", dest="intrinsic_latency", type=at_least(float, 0.0), metavar="SECONDS",
          help="measure scheduling delays of this machine for SECONDS; needs no server")  # fmt: skip
    parser.add_argument("-v", "--version", action="version", version=f"disque {__version__}", help="show the version")
    parser.add_argument("command", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
