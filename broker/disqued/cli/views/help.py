"""`disque help [command | @group]`: prints help without a server."""

from __future__ import annotations

import argparse
import sys

from disqued.cli.arguments import UsageError
from disqued.cli.exits import Exit
from disqued.cli.manual import explain


def run(options: argparse.Namespace) -> Exit:
    """Print the help on the topic."""
    topic = " ".join(options.command[1:])
    text = explain(topic)
    if text is None:
        raise UsageError(f"No help on '{topic}'; see 'disque help' for commands, 'disque --help' for options")
    sys.stdout.write(text + "\n")
    return Exit.OK
