"""A client that measures how long its commands take while other things happen on a cluster."""

from __future__ import annotations

import statistics
import threading
import time

from disqued.client import Client

PAUSE_S = 0.002
"""The witness leaves time for other work, as clients do."""


class Witness(threading.Thread):
    """Sends commands one after the other, and notes how long each took."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self._client = Client([f"127.0.0.1:{port}"], discover=False)
        self._ends = False
        self._took_s: list[float] = []

    def run(self) -> None:
        """Add, take and acknowledge a job with one copy, until the end."""
        with self._client as client:
            while not self._ends:
                for words in (("ADDJOB", "witness", "job", "0", "REPLICATE", "1"), ("PING",)):
                    self._timed(client, *words)
                taken = self._timed(client, "GETJOB", "NOHANG", "FROM", "witness")
                if isinstance(taken, list):
                    self._timed(client, "ACKJOB", taken[0][1])
                time.sleep(PAUSE_S)

    def _timed(self, client: Client, *words: str) -> object:
        began_s = time.perf_counter()
        reply = client.execute(*words)
        self._took_s.append(time.perf_counter() - began_s)
        return reply

    def begin(self) -> None:
        """Measure from now on."""
        self._took_s = []

    def p99_ms(self) -> float:
        """The 99th percentile since `begin`, in milliseconds."""
        return statistics.quantiles(self._took_s, n=100)[98] * 1000

    def end(self) -> None:
        """Stop."""
        self._ends = True
        self.join()
