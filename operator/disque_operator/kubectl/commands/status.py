"""`kubectl disque status [NAME]`: the status that the operator reports, of all clusters or of one."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import NoReturn

from disque_operator.apivalues import Json
from disque_operator.kubectl.api import RESOURCE, Kubectl, UnreachableError, retrying
from disque_operator.kubectl.exits import Exit
from disque_operator.kubectl.output import form, output_option, print_json
from disque_operator.kubectl.resource import (
    clusters,
    drain_line,
    headline,
    is_ready,
    now_utc,
    status,
    tables,
)
from disqued.cli.views.columns import as_lines
from disqued.cli.views.table import print_rows

POLL_EVERY_S = 2.0


def options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("name", nargs="?", help="name of the cluster (default: all clusters of the namespace)")
    parser.add_argument("-A", "--all-namespaces", action="store_true", help="list the clusters of all namespaces")
    parser.add_argument("-w", "--watch", action="store_true", help="watch for changes until Ctrl-C")
    output_option(parser)


def run(kubectl: Kubectl, chosen: argparse.Namespace) -> Exit:
    """Print the status once, or watch it; the exit status tells whether the named cluster is Ready."""
    on_terminal = chosen.output is None and sys.stdout.isatty()
    if chosen.name is None:
        return _all(kubectl, chosen, on_terminal)
    if chosen.watch and on_terminal:
        from disque_operator.kubectl.screen import redraw, render  # noqa: PLC0415  slow to import, not used in a pipe

        redraw(lambda width: render(kubectl.cluster(chosen.name), width), POLL_EVERY_S)
    if chosen.watch:
        line: Callable[[Json], str] = _json_line if chosen.output else _progress_line
        _repeat(lambda: line(kubectl.cluster(chosen.name)))
    cluster = kubectl.cluster(chosen.name)
    if chosen.output:
        print_json(as_object(cluster))
    elif on_terminal:
        from disque_operator.kubectl.screen import show  # noqa: PLC0415  slow to import, not used in a pipe

        show(cluster)
    else:
        sys.stdout.write(as_text(cluster))
    return Exit.OK if is_ready(cluster) else Exit.REFUSED


def as_object(cluster: Json) -> Json:
    """Return the name of the cluster and its unchanged status, for `-o json`."""
    metadata = cluster["metadata"]
    return {name: metadata.get(name) for name in ("namespace", "name", "generation")} | {"status": status(cluster)}


def as_text(cluster: Json) -> str:
    """Return the status as text for a pipe: a headline, then tables, separated by empty lines."""
    parts = [as_lines(columns, rows) for columns, rows in tables(cluster, now_utc())]
    return "\n".join([_progress_line(cluster), *parts])


def _progress_line(cluster: Json) -> str:
    return f"{drain_line(cluster) or headline(cluster)}\n"


def _json_line(cluster: Json) -> str:
    return json.dumps(as_object(cluster)) + "\n"


def _all(kubectl: Kubectl, chosen: argparse.Namespace, on_terminal: bool) -> Exit:
    everywhere = ("--all-namespaces",) * chosen.all_namespaces
    columns = [column for column in clusters(now_utc()) if column.name != "namespace" or chosen.all_namespaces]

    def fetch() -> list[Json]:
        return kubectl.items("get", RESOURCE, *everywhere)

    if chosen.watch and on_terminal:
        from disque_operator.kubectl.screen import redraw, rich_table  # noqa: PLC0415  as above

        redraw(lambda width: rich_table(columns, fetch(), width), POLL_EVERY_S)
    if chosen.watch:
        _repeat(
            lambda: (
                json.dumps([as_object(each) for each in fetch()]) + "\n"
                if chosen.output
                else as_lines(columns, fetch())
            )
        )
    print_rows(columns, fetch(), form(chosen), "No clusters found.")
    return Exit.OK


def _repeat(text: Callable[[], str]) -> NoReturn:
    """Print the text each time it changes, until Ctrl-C."""
    last = ""
    while True:
        try:
            now = text()
        except UnreachableError as error:
            sys.stderr.write(f"{retrying(error)}\n")
        else:
            sys.stdout.write(now if now != last else "")
            sys.stdout.flush()
            last = now
        time.sleep(POLL_EVERY_S)
