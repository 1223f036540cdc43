"""`disque purge QUEUE`: deletes the jobs of a queue on all nodes. On a terminal it asks for the name of the queue."""

from __future__ import annotations

import argparse
import sys

from disqued.cli.arguments import Parser
from disqued.cli.endpoint import endpoint_options
from disqued.cli.exits import Exit
from disqued.cli.views.client import client_for
from disqued.cli.views.columns import printable
from disqued.cli.views.count import warn_of_missing
from disqued.client import PurgeState

STATES: tuple[PurgeState, ...] = ("queued", "leased", "delayed", "dead", "held")


def run(options: argparse.Namespace) -> Exit:
    """Delete the jobs and print how many there were."""
    parser = Parser(
        "disque purge",
        None,
        "Delete the jobs of a queue on all nodes, also on nodes that return later.",
        [endpoint_options()],
    )
    parser.add_argument("queue", help="name of the queue")
    parser.add_argument(
        "--state",
        choices=STATES,
        action="append",
        default=[],
        help="delete only jobs in this state; can be repeated (default: queued, delayed, held and dead)",
    )
    parser.add_argument("--yes", action="store_true", help="do not ask for the name of the queue")
    options = parser.parse(options.command[1:], options)
    text = f"This deletes jobs of queue '{printable(options.queue)}' on all nodes"
    if not options.yes and sys.stdin.isatty() and not confirmed(options.queue, text):
        sys.stderr.write("That is not the name of the queue; no job was deleted.\n")
        return Exit.USAGE
    with client_for(options) as client:
        purged = client.qpurge(options.queue, states=options.state)
    sys.stdout.write(f"{purged.deleted} jobs deleted from queue '{printable(options.queue)}'.\n")
    warn_of_missing(purged.nodes_answered, purged.nodes_known)
    return Exit.OK


def confirmed(queue: str, text: str) -> bool:
    """Whether the user types the name of the queue, after being told what will happen."""
    sys.stdout.write(f"{text}. Type its name to confirm: ")
    sys.stdout.flush()
    return sys.stdin.readline().rstrip("\r\n") == queue
