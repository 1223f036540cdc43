"""Chords without polling: the task that looks after a chord is delivered when the results of the header are there.

Celery's own way, for backends that cannot count, is the task `chord_unlock`: it looks whether all results are there,
and tries again a second later. Here its message waits in the broker for the jobs of those results. It still looks, and
tries again if a result is missing, so a chord that has more tasks than a job can wait for only begins to poll later.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from celery.result import ResultSet
from celery.signals import before_task_publish

from disqued.client.urls import parse_nodes
from disqued.kombu.envelope import AFTER

MOST_PARENTS: Final = 64
"""The most jobs that a job can wait for."""
_UNLOCK: Final = "celery.chord_unlock"


def last_tasks(header: Any) -> list[str]:
    """Return the IDs of the last tasks of a header, as many as a job can wait for."""
    found: list[str] = []
    for result in header.results:
        found += last_tasks(result) if isinstance(result, ResultSet) else [str(result.id)]
    return found[-MOST_PARENTS:]


def is_same_cluster(broker_url: object, backend_url: object) -> bool:
    """Whether tasks and results are kept by the same nodes, as far as the URLs say."""
    try:
        return _nodes_of(broker_url) == _nodes_of(backend_url)
    except ValueError:
        return False


def _nodes_of(urls: object) -> list[str]:
    """Return the nodes in the URL, or in several with `;` between them. The options do not matter here."""
    texts = str(urls).split(";")
    return sorted(parse_nodes([text.partition("?")[0] for text in texts]).nodes)


@contextmanager
def delivered_after(job_ids: Sequence[str]) -> Iterator[None]:
    """Have `chord_unlock`, when this thread publishes it, delivered after the ends of these jobs."""
    thread = threading.get_ident()

    def hold(headers: dict[str, Any] | None = None, **_: Any) -> None:
        if headers is not None and threading.get_ident() == thread:
            headers[AFTER] = list(job_ids)

    before_task_publish.connect(hold, sender=_UNLOCK, weak=False)
    try:
        yield
    finally:
        before_task_publish.disconnect(hold, sender=_UNLOCK)
