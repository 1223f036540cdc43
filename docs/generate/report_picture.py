"""Take the picture of a report: `PYTHONPATH=tests python -m docs.generate.report_picture`.

A node with an append-only file runs for 15 minutes of virtual time. Workers are fast, slow, reject jobs or die.
`disque-report` reads the file, and Chromium renders the page. The seed is fixed.
"""
# ruff: noqa: S311, S603, T201  (a script with seeded random numbers that starts other programs)

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from playwright.sync_api import sync_playwright

from disqued.testing.local import LocalClient
from support.chromium import find_chromium
from support.logging_node import logging_node, written

PICTURE: Final = Path(__file__).parents[1] / "images" / "report.png"
SECONDS: Final = 900
WIDTH: Final = 1000
HEIGHT: Final = 1150


@dataclass(frozen=True)
class Kind:
    """A queue: jobs a minute, seconds of work for most of them, body bytes, RETRY, and how many in a hundred fail."""

    queue: str
    a_minute: float
    work_s: float
    body: int
    retry_s: int = 60
    fail: float = 1.0


KINDS: Final = (
    Kind("mail", 40, 2, 600),
    Kind("thumbnails", 60, 8, 90, fail=4),
    Kind("billing.invoices", 6, 30, 2_500, retry_s=300),
    Kind("search-index", 25, 1, 300),
    Kind("webhooks", 15, 20, 900, fail=20),
    Kind("exports.nightly", 2, 200, 150, retry_s=120, fail=8),
    Kind("sms", 10, 3, 160),
    Kind("audit", 30, 0.3, 1_200, fail=0),
    Kind("nobody-reads-this", 3, 1e9, 250),
)


def live(chance: random.Random) -> bytes:
    """Run one node for 15 minutes and return its append-only file."""
    local = logging_node()
    client = local.client()
    under_way: list[tuple[float, bytes, bool]] = []
    for second in range(SECONDS):
        for kind in KINDS:
            for _ in range(_poisson(chance, kind.a_minute / 60)):
                body = chance.randbytes(int(kind.body * chance.lognormvariate(0, 0.6)))
                client.add(kind.queue, body, "RETRY", kind.retry_s)
            if kind.work_s < SECONDS:
                under_way += _taken(client, kind, second, chance)
        due = [job for job in under_way if job[0] <= second]
        under_way = [job for job in under_way if job[0] > second]
        for _, job_id, failed in due:
            client.call("NACK" if failed else "ACKJOB", job_id)
        local.run(seconds=1)
    return written(local)


def _taken(client: LocalClient, kind: Kind, second: int, chance: random.Random) -> Iterator[tuple[float, bytes, bool]]:
    """Yield the jobs fetched in a second: when each is done, its ID, and whether it is rejected. Some workers die."""
    for job_id in client.take(kind.queue, count=3) if client.call("QLEN", kind.queue) else ():
        if chance.random() * 100 >= kind.fail / 2:
            yield second + kind.work_s * chance.lognormvariate(0, 0.8), job_id, chance.random() * 100 < kind.fail


def _poisson(chance: random.Random, mean: float) -> int:
    """Return a random number of arrivals with this mean."""
    count, left = 0, chance.expovariate(1)
    while left < mean:
        count += 1
        left += chance.expovariate(1)
    return count


def main() -> None:
    """Run the node, write the report and take the picture."""
    with tempfile.TemporaryDirectory() as name:
        log = Path(name) / "disque.aof"
        log.write_bytes(live(random.Random(7)))
        command = [sys.executable, "-m", "pipelines.report", "--aof", log.name, "--output", "report"]
        print(subprocess.run(command, check=True, capture_output=True, text=True, cwd=name).stdout)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
            page.goto(f"file://{name}/report/report.html")
            page.screenshot(path=PICTURE)
            browser.close()


if __name__ == "__main__":
    main()
