"""Posts events of clusters, at a limited rate.

A cluster that flaps would post an event every few seconds, and the API server keeps each one for an hour. As in
Kubernetes' own components, each cluster has a token bucket for each reason. Events without a token are only logged; the
next one that is posted counts them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from disque_operator import logs, names
from disque_operator.apivalues import Json
from disque_operator.decisions import Event
from disque_operator.kube import Kube, KubeError
from disque_operator.queue import Key

BURST: Final = 5
"""How many events of one reason are posted in a row."""
REFILL_S: Final = 300.0
"""Seconds until one more event of the reason may be posted."""
MESSAGE_LETTERS: Final = 1000
"""Length limit of event messages; the API server rejects longer ones."""

_LOG: Final = logging.getLogger(__name__)


@dataclass
class _Bucket:
    at_s: float
    tokens: float = BURST
    withheld: int = 0
    """Events since the last one that was posted."""
    since: datetime | None = None
    """When the first of them happened."""

    def take(self, now_s: float) -> bool:
        """Take a token; return whether there was one."""
        self.tokens = min(float(BURST), self.tokens + (now_s - self.at_s) / REFILL_S)
        self.at_s = now_s
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


class EventPoster:
    """Logs events and posts them. `clock` is monotonic, `now` is the time of day."""

    def __init__(self, kube: Kube, *, identity: str, clock: Callable[[], float], now: Callable[[], datetime]) -> None:
        self._kube = kube
        self._identity = identity
        self._clock = clock
        self._now = now
        self._buckets: dict[Key, dict[str, _Bucket]] = {}

    async def post(self, cluster: Json, events: Iterable[Event]) -> None:
        """Post events of a cluster. A failure is only logged: losing an event is better than repeating it."""
        metadata = cluster["metadata"]
        key = metadata["namespace"], metadata["name"]
        for event in events:
            level = logging.WARNING if event.type == "Warning" else logging.INFO
            logs.about(*key).log(level, "%s", event.message, extra={"reason": event.reason})
            buckets = self._buckets.setdefault(key, {})
            bucket = buckets.setdefault(event.reason, _Bucket(self._clock()))
            at = self._now()
            bucket.since = bucket.since or at
            bucket.withheld += 1
            if not bucket.take(self._clock()):
                continue
            body = self._body(cluster, event, bucket.withheld, bucket.since, at)
            bucket.withheld, bucket.since = 0, None
            try:
                await self._kube.create("Event", metadata["namespace"], body)
            except KubeError as error:
                _LOG.warning("posting an event failed: %s", error)

    def forget(self, key: Key) -> None:
        """Forget a deleted cluster."""
        self._buckets.pop(key, None)

    def _body(self, cluster: Json, event: Event, count: int, first: datetime, last: datetime) -> Json:
        metadata = cluster["metadata"]
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": f"{metadata['name']}.", "namespace": metadata["namespace"]},
            "involvedObject": {
                "apiVersion": names.API_VERSION,
                "kind": names.KIND,
                "name": metadata["name"],
                "namespace": metadata["namespace"],
                "uid": metadata["uid"],
                "resourceVersion": metadata["resourceVersion"],
            },
            "type": event.type,
            "reason": event.reason,
            "message": event.message[:MESSAGE_LETTERS],
            "action": event.reason,
            "eventTime": last.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "firstTimestamp": first.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "lastTimestamp": last.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "count": count,
            "source": {"component": names.MANAGER},
            "reportingComponent": names.MANAGER,
            "reportingInstance": self._identity,
        }
