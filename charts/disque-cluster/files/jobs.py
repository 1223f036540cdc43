"""What `helm test` runs: a job is added, fetched and acknowledged through the service of the cluster.

The cluster may still be forming: until the time is over each failure is told and followed by another attempt, with a
queue of its own, so that nothing of a former one is in the way.
"""
# ruff: noqa: INP001, T201  (a script that runs in a pod, and says what it did)

from __future__ import annotations

import os
import secrets
import sys
import time

from disqued.client import Backoff, Client, DisqueError

ANSWER_MS = 5000
PAUSE_S = 1.0
LIFE_S = 300


def attempt(client: Client) -> str:
    """The way of one job, as a sentence. Raises `DisqueError`, or `LookupError` when the job does not come."""
    queue = f"helm-test-{secrets.token_hex(8)}"
    added = client.add(queue, "a job of helm test", ttl_s=LIFE_S, timeout_ms=ANSWER_MS)
    fetched = [job.id for job in client.get(queue, timeout_ms=ANSWER_MS)]
    if fetched != [added]:
        raise LookupError(f"{added} was added, but GETJOB gave {fetched or 'nothing'} within {ANSWER_MS // 1000} s")
    if client.ack(added) != 1:
        raise LookupError(f"{added} was fetched, but ACKJOB did not know it")
    return f"{added} was added, fetched and acknowledged"


def main() -> int:
    """Try until it works or the time is over."""
    endpoint, password = os.environ["ENDPOINT"], os.environ.get("DISQUE_PASSWORD")
    deadline = time.monotonic() + float(os.environ["TIMEOUT_S"])
    while True:
        with Client([endpoint], password=password, discover=False, backoff=Backoff(attempts=1)) as client:
            try:
                print(f"{endpoint}: {attempt(client)}")
            except (DisqueError, LookupError) as error:
                print(f"{endpoint}: {error}", flush=True)
            else:
                return 0
        if time.monotonic() >= deadline:
            print(f"No job went through {endpoint} in {os.environ['TIMEOUT_S']} s. Look at: kubectl get disqueclusters")
            return 1
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    sys.exit(main())
