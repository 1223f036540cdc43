"""The entry point of `kubectl disque`: reads the options and starts the command's module, imported when needed."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from disque_operator.kubectl.api import Kubectl, RefusedError, UnreachableError
from disque_operator.kubectl.exits import Exit, exit_table
from disqued import __version__

PROGRAM = "kubectl disque"
SIGTERM_STATUS = 128 + signal.SIGTERM


@dataclass(frozen=True)
class Command:
    """Where a command is: a module of `disque_operator.kubectl.commands`, and what it is for."""

    module: str
    summary: str


COMMANDS = {
    "status": Command("status", "all clusters, or one: conditions, members, what goes on (--watch)"),
    "nodes": Command("nodes", "the nodes of a cluster, each asked itself"),
    "queues": Command("queues", "the queues of a cluster, added up over its nodes"),
    "jobs": Command("jobs", "the jobs of a cluster, with the nodes that have them"),
    "cli": Command("cli", "run the command line `disque` against a node"),
    "logs": Command("logs", "the logs of all nodes in one (-f follows, through restarts too)"),
    "report": Command("report", "write all that helps to find a fault to a .tar.gz, without passwords"),
    "password": Command("password", "the password, and how to connect"),
    "scale": Command("scale", "another number of nodes; nodes that go hand their jobs over first"),
    "drain": Command("drain", "have one pod hand its jobs over before maintenance, or take that back (--undo)"),
    "restart": Command("restart", "restart all nodes, one at a time"),
    "pause": Command("settings", "have the operator look on and do nothing"),
    "resume": Command("settings", "end a pause"),
    "hibernate": Command("settings", "stop all nodes with their jobs on their volumes"),
    "wake": Command("settings", "end a hibernation"),
}

EXTRAS = {"rich": "cli", "prompt_toolkit": "cli", "mypy_extensions": "server", "sortedcontainers": "server"}
"""Packages that only some commands need, and the extra that installs them."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `kubectl disque` with these arguments (default: those of the process) and return its exit status."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(SIGTERM_STATUS))  # so that no port forward is left behind
    return guarded(lambda: start(sys.argv[1:] if arguments is None else arguments))


def guarded(work: Callable[[], Exit]) -> int:
    """The exit status of a program that does this work; what goes wrong is told on standard error."""
    try:
        return work()
    except RefusedError as error:
        return _complain(str(error), Exit.REFUSED)
    except UnreachableError as error:
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
    """What `main` does, with exceptions for what goes wrong."""
    chosen = _parser().parse_args(arguments)
    command = COMMANDS[chosen.command]
    module: Any = import_module(f"disque_operator.kubectl.commands.{command.module}")
    parser = argparse.ArgumentParser(
        prog=f"{PROGRAM} {chosen.command}",
        description=f"{command.summary[0].upper()}{command.summary[1:]}.",
        epilog=f"exit status:\n{exit_table()}",
        parents=[_context_options()],
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.options(parser)
    options = parser.parse_args(chosen.rest, chosen)
    status: Exit = module.run(Kubectl(context_flags(options)), options)
    return status


def context_flags(options: argparse.Namespace) -> list[str]:
    """The options that `kubectl` is to get."""
    given = ((flag, getattr(options, flag, None)) for flag in ("kubeconfig", "context", "namespace"))
    return [word for flag, value in given if value is not None for word in (f"--{flag}", value)]


def _context_options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    add = parser.add_argument_group("which Kubernetes, as kubectl has it").add_argument
    # An option not given leaves no trace, so that those before and after the command's name add up.
    add("-n", "--namespace", default=argparse.SUPPRESS, help="the namespace (default: that of the context)")
    add("--context", default=argparse.SUPPRESS, help="the context of the kubeconfig")
    add("--kubeconfig", default=argparse.SUPPRESS, metavar="FILE", help="the kubeconfig")
    return parser


def _parser() -> argparse.ArgumentParser:
    commands = "\n".join(f"  {name:<10} {command.summary}" for name, command in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        usage=f"{PROGRAM} [options] command [argument ...]",
        description="Shows and changes clusters of brokers (DisqueCluster) on Kubernetes.",
        epilog=f"commands, each with its own --help:\n{commands}\n\nexit status:\n{exit_table()}",
        parents=[_context_options()],
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    parser.add_argument("command", choices=COMMANDS, metavar="command", help=argparse.SUPPRESS)
    parser.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


def _complain(text: str, status: Exit) -> Exit:
    sys.stderr.write(text + "\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
