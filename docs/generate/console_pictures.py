"""Take the pictures of the console: `python -m docs.generate.console_pictures [DIRECTORY [SECONDS]]`.

It starts three brokers with a small load, one of them with actions enabled, and uses Chromium with several window sizes
and both themes. A test runs the script. Take the pictures of the guide by hand, and look at them.
"""
# ruff: noqa: T201  (a script that starts what it names and says what it does)

from __future__ import annotations

import contextlib
import json
import random
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from disqued.client import Client, ConnectionLost
from disqued.testing.ports import free_port
from disqued.testing.processes import ServerProcess, form_cluster

IMAGES = Path(__file__).parents[1] / "images"
WARM_UP_S = 20.0
"""How long a page is open before its picture is taken, so that curves have data."""
PRODUCED = {"mail": 30, "thumbnails": 60, "billing:invoices": 10, "search-index": 25, "webhooks": 15, "mail-retry": 4}
"""Queue -> jobs added in a second."""
CONSUMED = {"mail": 0.13, "thumbnails": 0.06, "search-index": 0.25, "webhooks": 0.2, "reports": 1.0}
"""Queue -> pause of its worker in seconds."""
PAUSED = "mail-retry"
FAILED = {"SMTPRecipientsRefused: no such mailbox": 6, "TimeoutError: no answer from mx.example.org": 4, "bad body": 1}
"""Reason -> dead letters of the queue mail."""


@dataclass(frozen=True)
class Picture:
    """A page in a window of this size."""

    name: str
    width: int
    height: int
    dark: bool = False
    target: str = ""
    act: Callable[[Page], None] | None = None
    """The action before the picture is taken."""


def choose_jobs(page: Page) -> None:
    """Open one job and select two."""
    page.locator("#pausing").wait_for()
    boxes = page.locator("#jobs input[type=checkbox]")
    boxes.nth(2).wait_for()
    page.locator("#pause").click()  # from now on no further jobs appear
    for index in (1, 2):
        boxes.nth(index).check()
    page.locator("#jobs button.link").first.click()
    page.evaluate("scrollTo(0, 0)")


def open_dead_letter(page: Page) -> None:
    """Open one dead letter and select two."""
    boxes = page.locator("#dead-jobs input[type=checkbox]")
    boxes.nth(2).wait_for()
    page.locator("#dead-actions").wait_for()
    for index in (1, 2):
        boxes.nth(index).check()
    page.locator("#dead-jobs button.link").first.click()


def see_schedules(page: Page) -> None:
    """Wait for the schedules and their buttons."""
    page.get_by_role("button", name="Resume: webhook-retries").wait_for()


def open_task(page: Page) -> None:
    """Go to the page of the only job that waits for others."""
    page.locator("#jobs-state").select_option("held")
    job = page.locator("#jobs tbody button.link").first
    job.wait_for()
    page.goto(f"{page.url.split('#')[0]}#job={job.get_attribute('title')}")
    page.locator("#job-graph svg").wait_for()


PICTURES = (
    Picture("console-overview", 1280, 1000),
    Picture("console-overview-dark", 1280, 1000, dark=True),
    Picture("console-queue", 1280, 1500, target=f"#queue={PAUSED}", act=choose_jobs),
    Picture("console-dead", 1280, 1000, target="#dead", act=open_dead_letter),
    Picture("console-schedules", 1280, 520, target="#schedules", act=see_schedules),
    Picture("console-job", 1280, 630, target="#queue=transform", act=open_task),
    Picture("console-phone", 390, 844, dark=True),
    Picture("console-phone-queue", 390, 844, target="#queue=mail"),
)


def main(arguments: list[str]) -> None:
    """Write all pictures to a directory (default: docs/images), after an optional warm-up time in seconds."""
    directory = Path(arguments[0]) if arguments else IMAGES
    for path in take(directory, float(arguments[1]) if len(arguments) > 1 else WARM_UP_S):
        print(path)


def find_chromium() -> str | None:
    """Return the installed browser, if there is one."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def take(directory: Path, warm_up_s: float) -> list[Path]:
    """Write the pictures and return their paths."""
    directory.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as home, cluster(Path(home)) as (ports, http_port):
        workers = [partial(consume, ports[at % len(ports)], queue) for at, queue in enumerate(CONSUMED)]
        bury(ports[0])
        schedule(ports[0])
        plan(ports[0])
        for work in (*workers, *(partial(produce, port, len(ports)) for port in ports)):
            threading.Thread(target=work, daemon=True).start()
        with (
            sync_playwright() as playwright,
            contextlib.closing(
                playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
            ) as browser,
        ):
            pages = [(picture, opened(browser, picture, f"http://127.0.0.1:{http_port}/")) for picture in PICTURES]
            time.sleep(warm_up_s)
            return [save(page, picture, directory) for picture, page in pages]


def opened(browser: Browser, picture: Picture, address: str) -> Page:
    """Return a window that shows the console."""
    page = browser.new_page(
        viewport={"width": picture.width, "height": picture.height},
        color_scheme="dark" if picture.dark else "light",
        device_scale_factor=1,
    )
    page.goto(address + picture.target)
    return page


def save(page: Page, picture: Picture, directory: Path) -> Path:
    """Write one picture and close its window."""
    page.bring_to_front()
    page.locator("#dot[data-state=live]").wait_for()
    if picture.act is not None:
        picture.act(page)
    path = directory / f"{picture.name}.png"
    page.screenshot(path=path)
    page.close()
    return path


@contextlib.contextmanager
def cluster(directory: Path) -> Iterator[tuple[list[int], int]]:
    """Run a cluster of three brokers. Yields their client ports, and the HTTP port of the first one."""
    http_port = free_port()
    http = ("--http-port", str(http_port), "--http-actions", "yes", "--appendonly", "yes")
    with contextlib.ExitStack() as started:
        nodes = []
        for number in range(3):
            home = directory / str(number)
            home.mkdir()
            words = ("--loglevel", "warning", "--cluster-node-timeout", "1500", *(() if number else http))
            nodes.append(started.enter_context(ServerProcess(home, *words)))
        form_cluster(nodes)
        yield [node.port for node in nodes], http_port


def client(port: int) -> Client:
    """Return a client of one broker."""
    return Client([f"127.0.0.1:{port}"], discover=False)


def produce(port: int, producers: int) -> None:
    """Add the share of one of several producers until the broker stops."""
    chance = random.Random(port)  # noqa: S311  load, no secret
    numbers = iter(range(10**9))
    with contextlib.suppress(ConnectionLost), client(port) as producer:
        producer.pause(PAUSED, "out")
        while True:
            for queue, rate in PRODUCED.items():
                share = max(0.0, chance.gauss(rate, rate / 3)) / 5 / producers
                for _ in range(int(share + chance.random())):
                    body = {"to": f"user{next(numbers)}@example.org", "template": "welcome", "language": "en"}
                    producer.add(queue, json.dumps(body), replicate=2)
            time.sleep(0.2)


def schedule(port: int) -> None:
    """Set some schedules, one of which is paused."""
    with Client([f"127.0.0.1:{port}"]) as client:
        client.schedule_set("nightly-report", "0 3 * * 1-5", "reports", "sales", zone="Europe/Berlin", missed="once")
        client.schedule_set("cleanup", "every 15 m", "maintenance", "cleanup")
        client.schedule_set("heartbeat", "every 2 s", "reports", "heartbeat", maxlen=1, ttl_s=60)
        client.schedule_set("webhook-retries", "@hourly", "webhooks", "retry", strict=False)
        client.schedule_pause("webhook-retries")


def bury(port: int) -> None:
    """Make dead letters before the load begins."""
    with client(port) as worker:
        worker.qconf_set("mail*", {"limit": 5, "backoff": "1000 60000"})
        worker.qconf_set(PAUSED, {"retry": 30})
        for reason, count in FAILED.items():
            for number in range(count):
                worker.add("mail", json.dumps({"to": f"user{number}@example.net", "template": "welcome"}), replicate=2)
                for job in worker.get("mail"):
                    worker.nack(job.id, reason=reason, dead=True)


def plan(port: int) -> None:
    """Add tasks that wait for each other: one is done, a worker has another, and the others are held."""
    with client(port) as worker:
        parents = []
        for source in ("orders", "prices"):
            parents.append(worker.submit("extract", source, retry_s=1800))
            for job in worker.get("extract", with_claim=True):
                worker.working(job.id, claim=job.claim, note="2 of 5 files")
                worker.logjob(job.id, "2 of 5 files", claim=job.claim, seq=0)
        worker.ack(parents[0].id, result="s3://example/orders.parquet")
        both = worker.submit("transform", "orders with prices", after=parents)
        for target in ("warehouse", "search index"):
            worker.submit("load", target, after=[both])


def consume(port: int, queue: str) -> None:
    """Fetch and acknowledge jobs until the broker ends."""
    with contextlib.suppress(ConnectionLost), client(port) as worker:
        while True:
            for job in worker.get(queue, count=5, timeout_ms=2000):
                worker.ack(job.id)
            time.sleep(CONSUMED[queue])


if __name__ == "__main__":
    main(sys.argv[1:])
