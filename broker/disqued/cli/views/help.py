"""`disque help [command | @group]`: the manual without a server."""

from __future__ import annotations

import argparse
import sys

from disqued.cli.arguments import UsageError
from disqued.cli.exits import Exit
from disqued.cli.manual import explain


def run(options: argparse.Namespace) -> Exit:
    """Print the help text on the topic."""
    topic = " ".join(options.command[1:])
    text = explain(topic)
    if text is None:
        raise UsageError(f"No help on '{topic}': 'disque help' lists the commands, 'disque --help' the options")
    sys.stdout.write(text + "\n")
    return Exit.OK
