"""Tests of kombu, Celery and Dramatiq that are left out, each with the reason. Names are parts of pytest's names."""

from __future__ import annotations

from typing import Final

KOMBU: Final = {
    "test_Failover::test_failover_switches_to_alternate_url": "looks for the port of the URL in use in kombu's "
    "connection: the client of this transport has all URLs at once, and kombu switches between none",
}

_SAME_WITH_REDIS: Final = "fails on this machine with Redis as broker and backend, too"
_NO_DJANGO: Final = "needs Django, which is not installed"
_LONG: Final = "waits for minutes for what must not happen"

CELERY: Final = {
    "test_tasks.py::test_tasks::test_revoked_by_headers_complex_canvas": f"{_SAME_WITH_REDIS}: takes over 20 seconds",
    "test_tasks.py::test_trace_log_arguments": f"{_SAME_WITH_REDIS}: the log records reach no handler of pytest",
    "test_tasks.py::test_task_replacement::test_replaced_task_nesting_level_0": "clears after the call what its "
    "handler noted: it fails if the worker is faster than that",
    "test_inspect.py::test_Inspect::test_scheduled": "expects a task with an ETA in the memory of a worker: here it "
    "waits in the broker",
    "test_canvas.py::test_chord::test_disabling_flag_allow_error_cb_on_chord_header": f"{_LONG}: with Redis 157 s",
    "test_canvas.py::test_chord::test_enabling_flag_allow_error_cb_on_chord_header": f"{_LONG}: 90 s",
    "test_worker.py::test_django_fixup_direct_worker": _NO_DJANGO,
    "test_worker.py::test_django_fixup_installs_django_task_for_celery_subclass": _NO_DJANGO,
}

_KEYS_OF_REDIS: Final = "it looks into the keys or the scripts of Redis"

DRAMATIQ: Final = {
    "tests/test_rabbitmq.py": "it needs the client library of RabbitMQ, and looks into its connections",
    "tests/test_pidfile.py": "a second after it starts a process it expects its file; no broker takes part",
    "tests/test_watch.py": "it needs the library watchdog; no broker takes part",
    "tests/test_actors.py::test_actors_can_prioritize_work": (
        "each node delivers its own highest priority first, and here the messages are at two nodes"
    ),
    "tests/test_actors.py::test_actor_messages_can_be_assigned_time_limits": (
        "its actor ends when the middleware may look at it for the first time: on a busy machine it is too late"
    ),
    "tests/test_worker.py::test_exception_from_actor_doesnt_leak": (
        "the broker of the suite keeps exceptions, to raise them as StubBroker does; `dramatiq_adapter` has this test"
    ),
    "tests/test_stub_broker.py::test_stub_broker_raises_queue_error_when_enqueueing_messages_on_undeclared_queues": (
        "a program may add messages for actors that it does not have, as with Redis and RabbitMQ"
    ),
    "tests/test_redis.py::test_redis_unacked_messages_can_be_requeued": _KEYS_OF_REDIS,
    "tests/test_redis.py::test_redis_messages_can_be_dead_lettered": _KEYS_OF_REDIS,
    "tests/test_redis.py::test_redis_dead_lettered_messages_are_cleaned_up": _KEYS_OF_REDIS,
    "tests/test_redis.py::test_redis_messages_belonging_to_missing_actors_are_rejected": _KEYS_OF_REDIS,
    "tests/test_redis.py::test_redis_requeues_unhandled_messages_on_shutdown": _KEYS_OF_REDIS,
    "tests/test_redis.py::test_redis_requeues_unhandled_delay_messages_on_shutdown": _KEYS_OF_REDIS,
    "tests/test_redis.py::test_redis_broker_can_connect_via_client": _KEYS_OF_REDIS,
    "tests/test_redis.py::test_redis_consumer_ack_can_retry_on_connection_error": _KEYS_OF_REDIS,
    "tests/test_redis.py::test_redis_consumer_nack_can_retry_on_connection_error": _KEYS_OF_REDIS,
    "tests/test_redis.py::test_redis_join_race_condition": _KEYS_OF_REDIS,
}
