"""Entry point of `kubectl disque`: parses the options, then imports and runs the module of the command."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from disque_operator.kubectl.api import Kubectl, RequestRefusedError, UnreachableError
from disque_operator.kubectl.exits import Exit
from disqued import __version__
from disqued.cli.exits import exit_table, guarded

PROGRAM = "kubectl disque"
SIGTERM_STATUS = 128 + signal.SIGTERM


@dataclass(frozen=True)
class Command:
    """A command: its module in `disque_operator.kubectl.commands`, and its one-line help."""

    module: str
    summary: str


COMMANDS = {
    "status": Command("status", "show all clusters, or the conditions and members of one (--watch)"),
    "nodes": Command("nodes", "show the nodes of a cluster as each node reports itself"),
    "queues": Command("queues", "show the queues of a cluster, summed over its nodes"),
    "users": Command("users", "show the users of a cluster that DisqueUsers declare"),
    "jobs": Command("jobs", "show the jobs of a cluster and the nodes that hold them"),
    "cli": Command("cli", "run the `disque` command line against a node"),
    "logs": Command("logs", "print the logs of all nodes, merged by time (-f to follow)"),
    "report": Command("report", "collect diagnostics into a .tar.gz, without passwords"),
    "password": Command("password", "print the password and how to connect"),
    "scale": Command("scale", "set the number of nodes; removed nodes transfer their jobs first"),
    "drain": Command("drain", "move all jobs off a pod before maintenance (--undo to revert)"),
    "restart": Command("restart", "restart all nodes, one at a time"),
    "pause": Command("switches", "pause reconciliation"),
    "resume": Command("switches", "resume reconciliation"),
    "hibernate": Command("switches", "stop all nodes and keep their volumes"),
    "wake": Command("switches", "start a hibernated cluster"),
}

ERRORS = {RequestRefusedError: Exit.REFUSED, UnreachableError: Exit.CONNECTION}
"""Errors that are reported as a message, and their exit statuses."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `kubectl disque` with these arguments (default: those of the process) and return its exit status."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(SIGTERM_STATUS))  # a normal exit closes port forwards
    return guarded(lambda: start(sys.argv[1:] if arguments is None else arguments), ERRORS)


def start(arguments: Sequence[str]) -> Exit:
    """Parse the arguments and run the command; errors are raised, see `ERRORS`."""
    chosen = _parser().parse_args(arguments)
    command = COMMANDS[chosen.command]
    module: Any = import_module(f"disque_operator.kubectl.commands.{command.module}")
    parser = argparse.ArgumentParser(
        prog=f"{PROGRAM} {chosen.command}",
        description=f"{command.summary[0].upper()}{command.summary[1:]}.",
        epilog=f"exit status:\n{exit_table(Exit)}",
        parents=[_context_options()],
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.options(parser)
    options = parser.parse_args(chosen.rest, chosen)
    status: Exit = module.run(Kubectl(context_flags(options)), options)
    return status


def context_flags(options: argparse.Namespace) -> list[str]:
    """Return the options to pass to `kubectl`."""
    given = ((flag, getattr(options, flag, None)) for flag in ("kubeconfig", "context", "namespace"))
    return [word for flag, value in given if value is not None for word in (f"--{flag}", value)]


def _context_options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    add = parser.add_argument_group("kubectl options").add_argument
    # SUPPRESS, because options before and after the command's name are merged; a default would override the first.
    add("-n", "--namespace", default=argparse.SUPPRESS, help="namespace (default: that of the context)")
    add("--context", default=argparse.SUPPRESS, help="kubeconfig context to use")
    add("--kubeconfig", default=argparse.SUPPRESS, metavar="FILE", help="path to the kubeconfig file")
    return parser


def _parser() -> argparse.ArgumentParser:
    commands = "\n".join(f"  {name:<10} {command.summary}" for name, command in COMMANDS.items())
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        usage=f"{PROGRAM} [options] command [argument ...]",
        description="Inspect and change Disque clusters (DisqueCluster) on Kubernetes.",
        epilog=f"commands:\n{commands}\n\nRun '{PROGRAM} COMMAND --help' for the options of a command.\n\n"
        f"exit status:\n{exit_table(Exit)}",
        parents=[_context_options()],
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    parser.add_argument("command", choices=COMMANDS, metavar="command", help=argparse.SUPPRESS)
    parser.add_argument("rest", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    sys.exit(main())
