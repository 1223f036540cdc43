"""`disque aof`: looks into append only files; needs no server.

`disque aof dump FILE` prints a line of JSON for each record, `disque aof check FILE` is `disque-check-aof`.
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
    """Do what the word behind `aof` says."""
    words = options.command[1:]
    action = ACTIONS.get(words[0]) if words else None
    if action is None:
        parser = Parser("disque aof", "disque aof {dump,check} [options] FILE", "Looks into append only files.", [])
        parser.parse([word for word in words if word == "--help"])
        raise UsageError("disque aof: say what to do, 'dump' or 'check'; each has its own --help")
    return action(words[1:])


def dump(words: list[str]) -> Exit:
    """Print what stands in the file."""
    parser = Parser(
        "disque aof dump",
        None,
        "Prints a line of JSON for each record of an append only file, and for each damaged place.",
        [],
    )
    parser.add_argument("file", help="the file; - for standard input")
    parser.add_argument("--jobs", action="store_true", help="only the records that keep a job")
    parser.add_argument("--queue", help="only jobs of this queue")
    parser.add_argument("--state", choices=STATES, action="append", default=[], help="only this state; may be repeated")
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
    """Say whether the file is sound, and mend it."""
    parser = Parser("disque aof check", None, "Says whether an append only file is sound, as disque-check-aof.", [])
    parser.add_argument("file", help="the file")
    parser.add_argument("--fix", action="store_true", help="mend it; asks first")
    options = parser.parse(words)
    return check_file(options.file, fix=options.fix)


ACTIONS: dict[str, Callable[[list[str]], Exit]] = {"dump": dump, "check": check}
