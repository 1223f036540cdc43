"""`kubectl disque status [NAME]`: what the operator says of all clusters, or of one."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import NoReturn

from disque_operator.apivalues import Json
from disque_operator.kubectl.api import RESOURCE, Kubectl, UnreachableError
from disque_operator.kubectl.exits import Exit
from disque_operator.kubectl.output import form, output_option, print_json
from disque_operator.kubectl.resource import (
    MEMBERS,
    clusters,
    conditions,
    drain_line,
    headline,
    is_ready,
    now_utc,
    status,
)
from disqued.cli.views.columns import as_lines
from disqued.cli.views.table import print_rows

LOOK_EVERY_S = 2.0


def options(parser: argparse.ArgumentParser) -> None:
    """Its arguments."""
    parser.add_argument("name", nargs="?", help="a cluster; all of the namespace without it")
    parser.add_argument("-A", "--all-namespaces", action="store_true", help="the clusters of all namespaces")
    parser.add_argument("-w", "--watch", action="store_true", help="go on showing it until Ctrl-C")
    output_option(parser)


def run(kubectl: Kubectl, chosen: argparse.Namespace) -> Exit:
    """Show it once, or again and again; the exit status says whether the cluster of that name is Ready."""
    on_terminal = chosen.output is None and sys.stdout.isatty()
    if chosen.name is None:
        return _all(kubectl, chosen, on_terminal)
    if chosen.watch and on_terminal:
        from disque_operator.kubectl.screen import picture, redraw  # noqa: PLC0415  slow to import, no use in a pipe

        redraw(lambda width: picture(kubectl.cluster(chosen.name), width), LOOK_EVERY_S)
    if chosen.watch:
        line: Callable[[Json], str] = _json_line if chosen.output else _progress_line
        _repeat(lambda: line(kubectl.cluster(chosen.name)))
    cluster = kubectl.cluster(chosen.name)
    if chosen.output:
        print_json(as_object(cluster))
    elif on_terminal:
        from disque_operator.kubectl.screen import show  # noqa: PLC0415  slow to import, and of no use in a pipe

        show(cluster)
    else:
        sys.stdout.write(as_text(cluster))
    return Exit.OK if is_ready(cluster) else Exit.REFUSED


def as_object(cluster: Json) -> Json:
    """For programs: which cluster it is, and its status as it stands."""
    metadata = cluster["metadata"]
    return {name: metadata.get(name) for name in ("namespace", "name", "generation")} | {"status": status(cluster)}


def as_text(cluster: Json) -> str:
    """For a pipe: a line, then tables with an empty line between them."""
    state = status(cluster)
    parts = [_progress_line(cluster), as_lines(conditions(now_utc()), state.get("conditions") or ())]
    parts.append(as_lines(MEMBERS, state.get("members") or ()))
    return "\n".join(parts)


def _progress_line(cluster: Json) -> str:
    return f"{drain_line(cluster) or headline(cluster)}\n"


def _json_line(cluster: Json) -> str:
    return json.dumps(as_object(cluster)) + "\n"


def _all(kubectl: Kubectl, chosen: argparse.Namespace, on_terminal: bool) -> Exit:
    everywhere = ("--all-namespaces",) * chosen.all_namespaces
    columns = [column for column in clusters(now_utc()) if column.name != "namespace" or chosen.all_namespaces]

    def look() -> list[Json]:
        return kubectl.items("get", RESOURCE, *everywhere)

    if chosen.watch and on_terminal:
        from disque_operator.kubectl.screen import redraw, rich_table  # noqa: PLC0415  as above

        redraw(lambda width: rich_table(columns, look(), width), LOOK_EVERY_S)
    if chosen.watch:
        _repeat(
            lambda: (
                json.dumps([as_object(each) for each in look()]) + "\n" if chosen.output else as_lines(columns, look())
            )
        )
    print_rows(columns, look(), form(chosen), "No clusters.")
    return Exit.OK


def _repeat(text: Callable[[], str]) -> NoReturn:
    """Write the text whenever it has changed, until Ctrl-C."""
    last = ""
    while True:
        try:
            now = text()
        except UnreachableError as error:
            sys.stderr.write(f"No answer from Kubernetes, trying again: {error}\n")
        else:
            sys.stdout.write(now if now != last else "")
            sys.stdout.flush()
            last = now
        time.sleep(LOOK_EVERY_S)
