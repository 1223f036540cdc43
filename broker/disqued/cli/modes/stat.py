"""`--stat`: prints a line of statistics of a node every second."""

from __future__ import annotations

import sys
import time
from itertools import count
from typing import TYPE_CHECKING

from disqued.cli.exits import Exit
from disqued.cli.units import human_bytes
from disqued.cli.views.client import connected_client

if TYPE_CHECKING:
    import argparse

    from disqued.cli.endpoint import Endpoint

INTERVAL_S = 1.0
LINES_PER_HEADING = 20
HEADING = (
    "------- data -------------- --------------------- load --------------------\n"
    "jobs       queues  mem      clients blocked requests            connections\n"
)


def run(endpoint: Endpoint, options: argparse.Namespace) -> Exit:
    """Print lines until interrupted, or `-r` lines."""
    last_requests: int | None = None
    with connected_client(endpoint) as client:
        for line in count():
            fields = client.info()
            requests = int(fields["total_commands_processed"])
            delta = requests - (requests if last_requests is None else last_requests)
            last_requests = requests
            sys.stdout.write((HEADING if line % LINES_PER_HEADING == 0 else "") + _line(fields, delta))
            sys.stdout.flush()
            if line + 1 == options.repeat:
                break
            time.sleep(options.interval_s or INTERVAL_S)
    return Exit.OK


def _line(fields: dict[str, str], delta: int) -> str:
    columns = (
        (11, fields["registered_jobs"]),
        (8, fields["registered_queues"]),
        (9, human_bytes(int(fields["used_memory"]))),
        (8, fields["connected_clients"]),
        (8, fields["blocked_clients"]),
        (20, f"{fields['total_commands_processed']} (+{delta})"),
        (0, fields["total_connections_received"]),
    )
    return "".join(f"{text:<{width}}" for width, text in columns) + "\n"
