"""Tests of kombu and Celery that are left out, each with the reason. Names are parts of pytest's names."""

from __future__ import annotations

from typing import Final

KOMBU: Final = {
    "test_Failover::test_failover_switches_to_alternate_url": "looks for the port of the URL in use in kombu's "
    "connection: the client of this transport has all URLs at once, and kombu switches between none",
}

_SAME_WITH_REDIS: Final = "fails on this machine with Redis as broker and backend, too"
_NO_DJANGO: Final = "needs Django, which is not installed"

CELERY: Final = {
    "test_tasks.py::test_tasks::test_revoked_by_headers_complex_canvas": f"{_SAME_WITH_REDIS}: takes over 20 seconds",
    "test_tasks.py::test_trace_log_arguments": f"{_SAME_WITH_REDIS}: the log records reach no handler of pytest",
    "test_tasks.py::test_task_replacement::test_replaced_task_nesting_level_0": "clears after the call what its "
    "handler noted: it fails if the worker is faster than that",
    "test_inspect.py::test_Inspect::test_scheduled": "expects a task with an ETA in the memory of a worker: here it "
    "waits in the broker",
    "test_worker.py::test_django_fixup_direct_worker": _NO_DJANGO,
    "test_worker.py::test_django_fixup_installs_django_task_for_celery_subclass": _NO_DJANGO,
}
