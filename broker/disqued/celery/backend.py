"""The result backend: states, results and groups of Celery in result jobs (`disqued.client.resultjobs`)."""

from __future__ import annotations

import logging
import math
import os
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from celery import states
from celery.backends.asynchronous import AsyncBackendMixin
from celery.backends.base import Backend
from celery.exceptions import ImproperlyConfigured
from celery.exceptions import TimeoutError as CeleryTimeoutError
from celery.result import GroupResult, result_from_tuple

from disqued.celery.chords import delivered_after, is_same_cluster, last_tasks
from disqued.celery.errors import ResultTooLarge
from disqued.celery.groups import group_key, read_group, store_group
from disqued.celery.payloads import MOST_STATE_BYTES, complete_state, pack, shorten_state, unpack
from disqued.celery.runs import Runs
from disqued.celery.waiting import INTERVAL_S, ResultConsumer
from disqued.client import (
    Backoff,
    Client,
    ConnectionFailed,
    ConnectionLost,
    Loading,
    Misconfigured,
    NodeLeaving,
    NotReplicated,
    OutOfMemory,
    QueuePaused,
)
from disqued.client.resultjobs import MOST_KEYS, MOST_RESULT_BYTES, MOST_RETAIN_S, ResultJobs
from disqued.client.urls import parse_url, take_options

_LOG: Final = logging.getLogger(__name__)
QUEUE: Final = "celery.results"
_OPTIONS: Final = {"queue": str, "copies": int, "attempts": int}
"""The keys of `result_backend_transport_options`, which can be in the query of the URL too, with their types."""
_ATTEMPTS: Final = 12
"""About 20 s of attempts when no node can be reached, as with Celery's backend for Redis."""
_MAY_PASS: Final = (
    ConnectionFailed,
    ConnectionLost,
    Loading,
    Misconfigured,
    NodeLeaving,
    NotReplicated,
    OutOfMemory,
    QueuePaused,
)
"""Errors after which the same call may succeed later: all calls can be repeated."""


class DisqueBackend(AsyncBackendMixin, Backend):
    """The backend behind `result_backend="disque://..."`.

    `result_backend_transport_options` has `queue`, the queue of the result jobs (`celery.results`), `copies`, how many
    nodes know a result before it counts as stored (2), and `attempts` to reach a node (12). The URL can have the same
    options, `disque://host1,host2?copies=1`, and these count first.
    """

    supports_autoexpire = True
    supports_native_join = True
    supports_result_compression = True

    def __init__(self, app: Any, url: str | None = None, **options: Any) -> None:
        super().__init__(app, url=url, **options)
        try:
            self._address, of_url = take_options(url or "disque://localhost", _OPTIONS)
            self._target = parse_url(self._address)
        except ValueError as error:
            raise ImproperlyConfigured(f"result_backend: {error}") from error
        self._options = _read_options({**(app.conf.result_backend_transport_options or {}), **_values(of_url)})
        self._retain_s = _retain_s(self.expires)
        self._runs = Runs()
        self._results: ResultJobs | None = None
        self._process_id = 0
        self.result_consumer = ResultConsumer(self, app, self.accept, self._pending_results, self._pending_messages)

    def as_uri(self, include_password: bool = False) -> str:
        """Return the URL, for logs without its password."""
        url = str(self.url)
        if include_password or self._target.password is None:
            return url
        scheme, _, rest = url.partition("://")
        _, _, place = rest.rpartition("@")
        return f"{scheme}://{self._target.user or ''}:**@{place}"

    @property
    def results(self) -> ResultJobs:
        """Where results are kept. A process that was forked connects itself."""
        if self._results is None or self._process_id != os.getpid():
            self._process_id = os.getpid()
            client = Client([self._address], backoff=Backoff(attempts=self._options.get("attempts", _ATTEMPTS)))
            weakref.finalize(self, client.close)
            self._results = ResultJobs(
                client,
                self._options.get("queue", QUEUE),
                retain_s=self._retain_s,
                copies=self._options.get("copies", 2),
            )
        return self._results

    def exception_safe_to_retry(self, exc: BaseException) -> bool:
        """Whether `result_backend_always_retry` repeats the call."""
        return isinstance(exc, _MAY_PASS)

    # Results of tasks.

    def _store_result(
        self, task_id: str, result: Any, state: str, traceback: str | None = None, request: Any = None, **_: Any
    ) -> Any:
        meta = self._get_result_meta(result=result, state=state, traceback=traceback, request=request)
        meta["task_id"] = str(task_id)
        if state in states.READY_STATES:
            payload = pack(meta, self._encoded, MOST_RESULT_BYTES)
            self.results.store(str(task_id), payload, final=state == states.SUCCESS)
            self._runs.end(str(task_id))
        else:
            self._note_state(str(task_id), meta)
        return result

    def _note_state(self, task_id: str, meta: dict[str, Any]) -> None:
        state = meta["status"]
        try:
            payload = pack(meta, lambda version: self._encoded(shorten_state(version)), MOST_STATE_BYTES)
        except ResultTooLarge:
            _LOG.warning("state not stored: larger than %s bytes task_id=%s state=%s", MOST_STATE_BYTES, task_id, state)
            return
        number = self._runs.note(task_id, state)
        if number is not None:
            run, seq = number
            if not self.results.log(task_id, payload, run=run, seq=seq):
                _LOG.debug("state not taken by the nodes: task_id=%s state=%s", task_id, state)
        if state == states.RETRY:
            self._runs.end(task_id)

    def _encoded(self, meta: dict[str, Any]) -> bytes:
        payload: str | bytes = self.encode(meta)
        return payload.encode() if isinstance(payload, str) else payload

    def meta_of(self, task_id: str, payload: bytes) -> dict[str, Any]:
        """Return the state, result and so on that were stored for a task."""
        meta: dict[str, Any] = self.decode_result(unpack(payload))
        return complete_state(meta, task_id)

    def _get_task_meta_for(self, task_id: str) -> dict[str, Any]:
        found = self.results.latest(str(task_id))
        if found is None:
            return {"status": states.PENDING, "result": None}
        return self.meta_of(str(task_id), found[0])

    def get_many(
        self,
        task_ids: Iterable[str],
        timeout: float | None = None,
        interval: float | None = 0.5,
        no_ack: bool = True,
        on_message: Callable[[dict[str, Any]], object] | None = None,
        on_interval: Callable[[], object] | None = None,
        max_iterations: int | None = None,
        READY_STATES: frozenset[str] = states.READY_STATES,  # noqa: N803 - as in Celery
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the IDs and metadata of tasks as they become ready; with `max_iterations`, those that are."""
        del interval, no_ack, READY_STATES
        waiting = dict.fromkeys(map(str, task_ids))
        ends_s = math.inf if timeout is None else time.monotonic() + timeout
        while waiting:
            found = self.results.read(waiting)
            for task_id, payload in found.items():
                del waiting[task_id]
                meta = self.meta_of(task_id, payload)
                if on_message is not None:
                    on_message(meta)
                yield task_id, meta
            if max_iterations is not None or not waiting:
                return
            left_s = ends_s - time.monotonic()
            if left_s <= 0:
                raise CeleryTimeoutError(f"Operation timed out ({timeout})")
            if not found:
                self.results.wait(list(waiting)[:MOST_KEYS], timeout_s=min(INTERVAL_S, left_s))
            if on_interval is not None:
                on_interval()

    def _forget(self, task_id: str) -> None:
        self.results.forget(str(task_id))
        self.result_consumer.cancel_for(str(task_id))

    # Groups and chords.

    def apply_chord(self, header_result_args: Any, body: Any, **kwargs: Any) -> None:
        """Publish the task that runs the body of a chord, to be delivered when its header is done."""
        tasks = last_tasks(self.app.GroupResult(*header_result_args))
        broker_url = self.app.conf.broker_write_url or self.app.conf.broker_url
        if not tasks or not is_same_cluster(broker_url, self.url):
            super().apply_chord(header_result_args, body, **kwargs)
            return
        with delivered_after(self.results.add(tasks)):
            super().apply_chord(header_result_args, body, **(kwargs | {"countdown": 0}))

    def _save_group(self, group_id: str, result: GroupResult) -> GroupResult:
        store_group(self.results, str(group_id), self._encoded({"result": result.as_tuple()}))
        return result

    def _restore_group(self, group_id: str) -> dict[str, Any] | None:
        payload = read_group(self.results, str(group_id))
        if payload is None:
            return None
        meta: dict[str, Any] = self.decode(payload)
        meta["result"] = result_from_tuple(meta["result"], self.app)
        return meta

    def _delete_group(self, group_id: str) -> None:
        self.results.forget(group_key(str(group_id)))

    def __reduce__(self, args: Any = (), kwargs: Any = None) -> Any:
        return super().__reduce__(args, {"url": self.url, **(kwargs or {})})


def _values(texts: dict[str, str]) -> dict[str, Any]:
    """Return the values of options in the URL; a text that is no number is refused with the others."""
    return {name: int(text) if _OPTIONS[name] is int and text.isdecimal() else text for name, text in texts.items()}


def _read_options(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of the backend; others belong to other backends."""
    options: dict[str, Any] = {name: given[name] for name in _OPTIONS if name in given}
    for name, value in options.items():
        if not isinstance(value, _OPTIONS[name]) or not value or (isinstance(value, int) and value < 1):
            kind = "a name" if _OPTIONS[name] is str else "a number greater than 0"
            raise ImproperlyConfigured(f"option of the result backend: {name} must be {kind}, not {value!r}")
    return options


def _retain_s(expires_s: float | None) -> int:
    """How long results are kept: `result_expires`, at most what nodes allow, which is also meant by never."""
    if not expires_s or expires_s > MOST_RETAIN_S:
        _LOG.warning("result_expires=%s: results are kept for %s days", expires_s, MOST_RETAIN_S // 86400)
        return MOST_RETAIN_S
    return max(1, math.ceil(expires_s))
