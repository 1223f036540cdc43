"""The program of `helm test`: adds, fetches and acknowledges a job through the Service of the cluster.

The cluster may still be forming, so the program prints each failure and tries again until the timeout. Each attempt
uses a new queue, so that jobs of earlier attempts do not interfere.
"""
# ruff: noqa: INP001, T201  (a script that runs in a pod and prints its result)

from __future__ import annotations

import os
import secrets
import sys
import time

from disqued.client import Backoff, Client, DisqueError, tls_context

REPLY_MS = 5000
PAUSE_S = 1.0
LIFE_S = 300


def attempt(client: Client) -> str:
    """Send a job through the cluster and return the result. Raises `DisqueError`, or `LookupError` if it is lost."""
    queue = f"helm-test-{secrets.token_hex(8)}"
    added = client.add(queue, "a job of helm test", ttl_s=LIFE_S, timeout_ms=REPLY_MS)
    fetched = [job.id for job in client.get(queue, timeout_ms=REPLY_MS)]
    if fetched != [added]:
        raise LookupError(f"{added} was added, but GETJOB returned {fetched or 'nothing'} within {REPLY_MS // 1000} s")
    if client.ack(added) != 1:
        raise LookupError(f"{added} was fetched, but ACKJOB did not find it")
    return f"{added} was added, fetched and acknowledged"


def main() -> int:
    """Try until a job passes or the timeout expires, and return the exit status."""
    endpoint, password = os.environ["ENDPOINT"], os.environ.get("DISQUE_PASSWORD")
    ca_file = os.environ.get("CA_FILE")
    tls = tls_context(cafile=ca_file) if ca_file else False
    deadline = time.monotonic() + float(os.environ["TIMEOUT_S"])
    while True:
        with Client([endpoint], password=password, tls=tls, discover=False, backoff=Backoff(attempts=1)) as client:
            try:
                print(f"{endpoint}: {attempt(client)}")
            except (DisqueError, LookupError) as error:
                print(f"{endpoint}: {error}", flush=True)
            else:
                return 0
        if time.monotonic() >= deadline:
            print(f"timed out after {os.environ['TIMEOUT_S']} s at {endpoint}; see: kubectl get disqueclusters")
            return 1
        time.sleep(PAUSE_S)


if __name__ == "__main__":
    sys.exit(main())
