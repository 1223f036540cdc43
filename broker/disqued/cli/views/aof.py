"""`disque aof`: inspects append-only files; needs no server.

`disque aof dump FILE` prints each record as a line of JSON. `disque aof check FILE` is `disque-check-aof`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable

from disqued.cli.aoffile import opened, walk
from disqued.cli.arguments import Parser, UsageError
from disqued.cli.checkaof import check_file
from disqued.cli.exits import Exit
from disqued.persistence.dump import Wanted

STATES = ("active", "queued")


def run(options: argparse.Namespace) -> Exit:
    """Run the action that follows `aof`."""
    words = options.command[1:]
    action = ACTIONS.get(words[0]) if words else None
    if action is None:
        parser = Parser("disque aof", "disque aof {dump,check} [options] FILE", "Inspect append-only files.", [])
        parser.parse([word for word in words if word == "--help"])
        raise UsageError("disque aof: missing action, use 'dump' or 'check' (each has --help)")
    return action(words[1:])


def dump(words: list[str]) -> Exit:
    """Print the records of the file."""
    parser = Parser(
        "disque aof dump",
        None,
        "Print each record and each damaged part of an append-only file as a line of JSON.",
        [],
    )
    parser.add_argument("file", help="append-only file; - for standard input")
    parser.add_argument("--jobs", action="store_true", help="print only records that contain a job")
    parser.add_argument("--queue", help="print only jobs of this queue")
    parser.add_argument(
        "--state", choices=STATES, action="append", default=[], help="print only jobs in this state; can be repeated"
    )
    options = parser.parse(words)
    queue = None if options.queue is None else os.fsencode(options.queue)
    wanted = Wanted(queue, frozenset(options.state), jobs=options.jobs)
    sound = True
    with opened(options.file) as (file, size):
        for item in walk(file, size):
            fields = wanted.describe(item)
            if fields is not None:
                sys.stdout.write(json.dumps(fields) + "\n")
                sound = sound and "damage" not in fields
    return Exit.OK if sound else Exit.REFUSED


def check(words: list[str]) -> Exit:
    """Check the file, and repair it with `--fix`."""
    parser = Parser("disque aof check", None, "Check an append-only file, like disque-check-aof.", [])
    parser.add_argument("file", help="append-only file")
    parser.add_argument("--fix", action="store_true", help="repair the file, after confirmation")
    options = parser.parse(words)
    return check_file(options.file, fix=options.fix)


ACTIONS: dict[str, Callable[[list[str]], Exit]] = {"dump": dump, "check": check}
