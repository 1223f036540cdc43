"""The broker of Dramatiq with three real nodes and real workers."""

from __future__ import annotations

import gc
import logging
import os
import threading
import weakref
from collections.abc import Callable

import pytest
from dramatiq import Worker
from dramatiq.common import current_millis
from dramatiq.errors import ConnectionFailed, QueueJoinTimeout, QueueNotFound

from disqued.client import Backoff
from disqued.dramatiq import DisqueBroker
from disqued.testing.ports import free_port
from disqued.testing.processes import wait_until
from dramatiq_adapter.conftest import MakeBroker
from dramatiq_adapter.workers import LONG_MS, LONG_S, Calls, actor, dead_letter, worker
from support.cluster import RealCluster


def until(condition: Callable[[], object], what: str) -> None:
    wait_until(condition, what, str, LONG_S)


def test_messages_of_several_queues_and_producers_are_processed_once(make_broker: MakeBroker) -> None:
    consuming, producers, calls = make_broker(), [make_broker() for _ in range(3)], Calls()
    mail = actor(consuming, calls.add, actor_name="mail", queue_name="mail")
    actor(consuming, calls.add, actor_name="report", queue_name="report")
    with worker(consuming):
        for number in range(60):
            for name in ("mail", "report"):
                message = mail.message(f"{name} {number}").copy(actor_name=name, queue_name=name)
                producers[number % 3].enqueue(message)
        consuming.join("mail", timeout=LONG_MS)
        consuming.join("report", timeout=LONG_MS)
    assert sorted(calls.seen) == sorted(f"{name} {number}" for name in ("mail", "report") for number in range(60))
    assert consuming.get_declared_queues() == {"mail", "report"}


def test_delayed_message_waits_in_the_cluster_and_not_in_a_worker(broker: DisqueBroker) -> None:
    calls = Calls()

    def record(sent_ms: int) -> None:
        calls.add(current_millis() - sent_ms)

    task = actor(broker, record)
    assert broker.get_declared_delay_queues() == set()
    with worker(broker) as running:
        sent = task.send_with_options(args=(current_millis(),), delay=1200)
        of_another_broker = task.message(current_millis()).copy(
            queue_name="default.DQ", options={"eta": current_millis() + 1200}
        )
        broker.enqueue(of_another_broker)
        assert sent.queue_name == "default"
        assert "eta" not in sent.options
        assert set(running.consumers) == {"default"}
        assert broker.get_queue_message_counts("default") == (0, 2, 0)
        assert running.work_queue.empty()
        with pytest.raises(QueueJoinTimeout):
            broker.join("default", timeout=100)
        broker.join("default", timeout=LONG_MS)
    assert min(calls.wait_for(2)) >= 1200


def test_lower_priorities_of_actors_and_higher_ones_of_the_broker_come_first(
    make_broker: MakeBroker, nodes: RealCluster
) -> None:
    broker = make_broker(nodes=[nodes.nodes[0].address])  # each node orders the messages that it has
    for name, priority in (("rarely", 100), ("soon", -5), ("usual", 0)):
        actor(broker, print, actor_name=name, priority=priority)
    actor(broker, print, actor_name="first", broker_priority=7)
    for name in ("rarely", "usual", "soon", "first"):
        broker.enqueue(broker.get_actor(name).message())
    broker.enqueue(broker.get_actor("rarely").message_with_options(args=("really",), broker_priority=9))
    until(lambda: sum(broker.get_queue_message_counts("default")) == 5, "all are queued")
    consumer = broker.consume("default", prefetch=10, timeout=LONG_MS)
    found: list[tuple[object, ...]] = []
    while len(found) < 5:
        message = next(consumer)
        assert message is not None
        found.append((message.actor_name, *message.args))
        consumer.ack(message)
    consumer.close()
    assert found == [("rarely", "really"), ("first",), ("soon",), ("usual",), ("rarely",)]


def test_failing_message_is_retried_and_becomes_one_dead_letter_that_can_be_redriven(broker: DisqueBroker) -> None:
    calls, fixed = Calls(), threading.Event()

    def fail() -> None:
        calls.add("called")
        if not fixed.is_set():
            raise ValueError("no such customer")

    task = actor(broker, fail, max_retries=2, min_backoff=1, max_backoff=2)
    with worker(broker):
        task.send()
        calls.wait_for(3)
        assert dead_letter(broker).reason == "ValueError: no such customer"
        assert broker.get_queue_message_counts("default") == (0, 0, 1)
        fixed.set()
        broker.client.redrive(f"{broker.job_queue('default')}.dead")
        calls.wait_for(4)
        broker.join("default", timeout=LONG_MS)
    assert calls.seen == ["called"] * 4


def test_exceptions_of_actors_are_freed_at_once(broker: DisqueBroker) -> None:
    raised: list[weakref.ref[BaseException]] = []

    class NoCustomerError(Exception):
        def __init__(self) -> None:
            raised.append(weakref.ref(self))

    def fail() -> None:
        raise NoCustomerError

    logging.disable()
    gc.disable()  # without it, only exceptions that are part of no circle are freed
    try:
        with worker(broker, threads=1):
            actor(broker, fail, max_retries=1, min_backoff=1, max_backoff=2).send()
            broker.join("default", timeout=LONG_MS)
            until(lambda: len(raised) == 2 and not any(made() for made in raised), "the exceptions are gone")
    finally:
        gc.enable()
        logging.disable(logging.NOTSET)


def test_messages_that_no_actor_can_take_become_dead_letters_with_the_reason(broker: DisqueBroker) -> None:
    calls = Calls()
    known = actor(broker, calls.add, actor_name="known")
    broker.enqueue(known.message("x").copy(actor_name="nobody"))
    broker.client.add(broker.job_queue("default"), b"no message")
    with worker(broker):
        known.send("next")
        assert calls.wait_for(1) == ["next"]
        reasons = {dead_letter(broker, keep=False).reason for _ in range(2)}
    assert reasons == {"ActorNotFound: nobody", "DecodeError: Failed to decode message."}


def test_stopped_worker_gives_back_what_it_has_not_begun_without_counting_it(broker: DisqueBroker) -> None:
    began, may_end, calls = threading.Semaphore(0), threading.Event(), Calls()

    def work(number: int) -> None:
        began.release()
        assert may_end.wait(LONG_S)
        calls.add(number)

    task = actor(broker, work)
    broker.client.qconf_set(broker.job_queue("default"), {"limit": 1})
    running = Worker(broker, worker_timeout=100, worker_threads=2)
    running.start()
    for number in range(12):
        task.send(number)
    for _ in range(2):
        assert began.acquire(timeout=LONG_S)
    until(lambda: running.work_queue.qsize() == 2, "the worker has fetched as many again")
    stopping = threading.Thread(target=running.stop)
    stopping.start()
    until(lambda: not any(thread.running for thread in running.workers), "the worker takes no more")
    may_end.set()
    stopping.join()
    assert len(calls.seen) == 2
    with worker(broker):
        broker.join("default", timeout=LONG_MS)
    assert sorted(calls.seen) == list(range(12))
    assert broker.get_queue_message_counts("default")[2] == 0


def test_message_stays_with_its_worker_while_the_actor_runs_and_its_consumer_is_replaced(
    make_broker: MakeBroker,
) -> None:
    broker = make_broker(heartbeat_timeout=2000)
    task = actor(broker, print, actor_name="slow")
    task.send()
    consumer = broker.consume("default", timeout=LONG_MS)
    message = next(consumer)
    assert message is not None
    consumer.close()
    other = broker.consume("default", timeout=5000)
    assert next(other) is None  # more than twice as long as the lease
    other.ack(message)
    other.close()
    broker.join("default", timeout=LONG_MS)


def test_moved_message_is_processed_in_its_new_queue(broker: DisqueBroker) -> None:
    calls = Calls()
    actor(broker, calls.add, actor_name="add", queue_name="slow")
    broker.declare_queue("fast")
    message = broker.get_actor("add").message("moved")
    broker.client.add(broker.job_queue("fast"), message.encode())
    with worker(broker) as running:
        assert calls.wait_for(1) == ["moved"]
        broker.join("fast", timeout=LONG_MS)
        assert all(thread.is_alive() for thread in running.workers)


def test_flush_drops_what_no_worker_has(broker: DisqueBroker) -> None:
    task = actor(broker, print)
    task.send()
    consumer = broker.consume("default", timeout=LONG_MS)
    held = next(consumer)
    assert held is not None
    consumer.nack(held)
    dead_letter(broker)
    task.send()
    task.send_with_options(delay=LONG_MS)
    broker.flush_all()
    broker.join("default", timeout=LONG_MS)
    assert broker.get_queue_message_counts("default") == (0, 0, 0)
    task.send()
    assert next(consumer) is not None
    consumer.close()


def test_child_process_adds_messages_over_its_own_connection(broker: DisqueBroker) -> None:
    calls = Calls()
    task = actor(broker, calls.add, actor_name="add")
    task.send("parent")
    child = os.fork()
    if child == 0:
        try:
            task.send("child")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    task.send("parent again")
    with worker(broker):
        assert sorted(calls.wait_for(3)) == ["child", "parent", "parent again"]


def test_errors_say_what_is_wrong(broker: DisqueBroker) -> None:
    with pytest.raises(QueueNotFound):
        broker.consume("unknown")
    with pytest.raises(QueueNotFound):
        broker.join("unknown")
    with pytest.raises(TypeError, match="either url or nodes"):
        DisqueBroker(url="disque://localhost", nodes=["localhost"])
    with pytest.raises(ValueError, match="invalid URL of a node"):
        DisqueBroker(url="redis://localhost")
    with pytest.raises(ValueError, match="message_ttl at least twice"):
        DisqueBroker(message_ttl=5000)
    away = DisqueBroker(url=f"disque://127.0.0.1:{free_port()}", backoff=Backoff(attempts=1))
    task = actor(away, print)
    with pytest.raises(ConnectionFailed, match="cannot connect to any node"):
        task.send()
    away.close()
