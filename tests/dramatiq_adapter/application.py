"""An application that the command `dramatiq` runs. What its actors do is told in a queue that tests read."""

from __future__ import annotations

import os
import time

import dramatiq
from dramatiq.middleware.prometheus import Prometheus

from disqued.dramatiq import DisqueBroker

TOLD = "told"

broker = DisqueBroker(nodes=os.environ["NODES"].split(","), namespace=os.environ["NAMESPACE"], heartbeat_timeout=2000)
broker.add_middleware(Prometheus())
dramatiq.set_broker(broker)


def tell(what: str) -> None:
    broker.client.add(broker.job_queue(TOLD), f"{what} {os.getpid()}")


@dramatiq.actor
def work(seconds: float) -> None:
    tell("began")
    deadline_s = time.monotonic() + seconds
    while time.monotonic() < deadline_s:
        time.sleep(0.05)
    tell("ended")
