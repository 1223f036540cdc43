"""Publishing and consuming with kombu, against three real nodes."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import re
import signal
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from kombu import Exchange, Queue

from disqued.client import Client, ConnectionLost, JobDetails, JobId, sockets
from disqued.testing.processes import ServerProcess
from kombu_transport.messages import Messages, until

Connect = Callable[..., Any]


def queue_named(name: str) -> Queue:
    return Queue(name, Exchange(name), routing_key=name)


def publish(connection: Any, queue: Queue, body: Any, **options: Any) -> None:
    connection.Producer().publish(
        body, exchange=queue.exchange, routing_key=queue.routing_key, declare=[queue], **options
    )


def only_job(broker: Client, nodes: list[ServerProcess], queue: str) -> JobDetails:
    """The one unfinished job of a queue, as the first node sees it."""
    found: list[JobId] = []

    def is_there() -> bool:
        found[:] = list(broker.jscan(queue=queue))
        return len(found) == 1

    until(is_there, f"one job in {queue}")
    details = broker.show(found[0])
    assert details is not None
    assert len(nodes) == 3
    return details


def test_messages_of_all_forms_arrive_as_they_were_sent(connect: Connect) -> None:
    queue = queue_named("forms")
    connection = connect()
    bodies = [{"text": "ünïcode", "deep": [1, None, {"a": "\U0001f600"}]}, "plain", 5]
    for body in bodies:
        publish(connection, queue, body, headers={"trace": "t-1", "when": datetime(2026, 1, 2, tzinfo=UTC)})
    publish(connection, queue, {"tuple": (1, 2)}, serializer="pickle")
    publish(connection, queue, b"\xff\x00bytes", content_type="application/octet-stream", content_encoding="binary")
    publish(connection, queue, "long " * 1000, compression="gzip", correlation_id="c-1", reply_to="r-1")

    messages = Messages(connect(), queue)
    found = messages.take(6)

    assert [message.decode() for message in found[:3]] == bodies
    assert found[0].headers == {"trace": "t-1", "when": datetime(2026, 1, 2, tzinfo=UTC)}
    assert pickle.loads(found[3].body) == {"tuple": (1, 2)}
    assert found[4].body == b"\xff\x00bytes"
    assert found[5].decode() == "long " * 1000
    assert found[5].properties["correlation_id"] == "c-1"
    assert {message.delivery_tag[:2] for message in found} == {"D-"}


def test_argument_of_a_publish_that_is_no_property_is_ignored_if_json_cannot_hold_it(connect: Connect) -> None:
    """As with AMQP, where all arguments that are no properties are."""
    queue = queue_named("arguments")
    connection = connect()
    publish(connection, queue, 1, trace="kept")
    publish(connection, queue, 2, trace="dropped", signal=object(), correlation_id="c", priority=3)
    with pytest.raises(TypeError):
        publish(connection, queue, 3, headers={"signal": object()})

    messages = Messages(connect(), queue)
    found = {message.decode(): message.properties for message in messages.take(2)}
    assert found[1]["trace"] == "kept"
    assert (found[2]["correlation_id"], found[2]["priority"]) == ("c", 3)
    assert not {"trace", "signal"} & set(found[2])
    assert messages.stays_empty()


def test_body_of_a_job_is_readable_json(connect: Connect, broker: Client, nodes: list[ServerProcess]) -> None:
    publish(connect(), queue_named("readable"), {"città": "Forlì"}, headers={"task": "mail"})

    body = only_job(broker, nodes, "readable").body

    assert body is not None
    assert '"body": "{\\"citt\\\\u00e0\\"' in body.decode()
    assert '"headers": {"task": "mail"}' in body.decode()


def test_job_of_another_program_is_a_message_with_its_body(connect: Connect, broker: Client) -> None:
    broker.add("foreign", b"no envelope \xff")

    [message] = Messages(connect(), queue_named("foreign")).take(1)

    assert message.body == b"no envelope \xff"
    assert message.headers == {}
    message.reject()


def test_prefetch_bounds_unacknowledged_messages_and_an_acknowledgement_makes_room(
    connect: Connect, broker: Client
) -> None:
    queue = queue_named("prefetch")
    connection = connect()
    for number in range(7):
        publish(connection, queue, number)
    messages = Messages(connect(), queue, prefetch=3)

    first = messages.take(3)
    assert messages.stays_empty()
    first[0].ack()
    [second] = messages.take(1)
    assert messages.stays_empty()
    assert second.payload == 3

    messages.connection.release()
    until(lambda: broker.qcount("prefetch").queued == 6, "the others are back, the first is done")


def test_requeued_messages_count_attempts_and_rejected_ones_are_dead_letters(
    connect: Connect, broker: Client, nodes: list[ServerProcess]
) -> None:
    queue = queue_named("returned")
    publish(connect(), queue, "again")
    messages = Messages(connect(), queue)

    for attempt in range(1, 4):
        messages.take(1)[0].requeue()
        messages.take(1, keep=True)
        assert messages.received[0].delivery_info["redelivered"] is True
        assert messages.received[0].headers["x-delivery-count"] == attempt
    messages.take(1)[0].reject()

    dead = only_job(broker, nodes, "returned.dead")
    assert (dead.origin_queue, dead.attempts_before, dead.reason) == ("returned", 4, "rejected by its consumer")


def test_closed_connection_returns_its_messages_and_counts_nothing(connect: Connect) -> None:
    queue = queue_named("closed")
    publish(connect(), queue, "again")
    for _ in range(3):
        first = Messages(connect(), queue)
        first.take(1)
        first.connection.release()

    [message] = Messages(connect(), queue).take(1)

    assert "x-delivery-count" not in message.headers
    assert "redelivered" not in message.delivery_info


def test_acknowledgement_after_the_connection_was_closed_ends_the_message(connect: Connect, broker: Client) -> None:
    queue = queue_named("late")
    publish(connect(), queue, "done")
    messages = Messages(connect(), queue)
    [message] = messages.take(1)
    messages.connection.release()

    message.ack()

    until(lambda: list(broker.jscan(queue="late")) == [], "it is acknowledged")


def test_message_whose_attempt_failed_says_so(connect: Connect, broker: Client) -> None:
    queue = queue_named("redelivered")
    publish(connect(), queue, "again")
    [job] = broker.get("redelivered", timeout_ms=5000)
    broker.nack(job.id)

    [message] = Messages(connect(), queue).take(1)

    assert message.delivery_info["redelivered"] is True
    assert message.headers["x-delivery-count"] == 1


def test_consumer_without_acknowledgements_leaves_nothing_behind(connect: Connect, broker: Client) -> None:
    queue = queue_named("no-ack")
    connection = connect()
    for number in range(3):
        publish(connection, queue, number)
    messages = Messages(connect(), queue, no_ack=True)

    assert [message.payload for message in messages.take(3)] == [0, 1, 2]
    until(lambda: list(broker.jscan(queue="no-ack")) == [], "all are acknowledged")


def test_cancelled_consumer_gives_back_what_it_had_fetched_ahead(connect: Connect, broker: Client) -> None:
    queue = queue_named("cancelled")
    connection = connect()
    for number in range(10):
        publish(connection, queue, number)
    messages = Messages(connect(), queue, prefetch=10)
    messages.take(1)[0].ack()

    messages.consumer.cancel()

    until(lambda: broker.qcount("cancelled").queued == 9, "nine are back")
    publish(connection, queue, "later")
    assert messages.stays_empty()


@pytest.mark.parametrize("step", ["send", "_read"])
def test_signal_handler_that_cancels_in_the_middle_of_a_fetch_loses_no_message(
    connect: Connect, broker: Client, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """As Celery does in a cold shutdown. The messages would come back after ten minutes."""
    queue = queue_named(f"interrupted-{step}")
    publishing, consuming = connect(retry=600), connect()
    for number in range(10):
        publish(publishing, queue, number)
    messages = Messages(consuming, queue, prefetch=10)
    done = getattr(sockets.SocketLink, step)

    def interrupted(link: sockets.SocketLink, *args: Any) -> Any:
        result = done(link, *args)
        if step == "send" or b"D-" in result:  # part of a reply with jobs
            signal.raise_signal(signal.SIGUSR1)
        return result

    monkeypatch.setattr(sockets, "READ_BYTES", 100)
    monkeypatch.setattr(sockets.SocketLink, step, interrupted)
    former = signal.signal(signal.SIGUSR1, lambda *_: messages.consumer.cancel())
    try:
        messages.drain(1)
    finally:
        signal.signal(signal.SIGUSR1, former)
    consuming.close()
    until(lambda: broker.qcount(queue.name).queued == 10, "all are back")


def test_simple_queue_get_purge_and_size(connect: Connect) -> None:
    connection = connect()
    simple = connection.SimpleQueue("simple")
    for number in range(5):
        simple.put(number)
    message = simple.get(timeout=10)
    assert message.payload == 0
    message.ack()
    channel = connection.channel()
    assert channel.basic_get("empty") is None
    assert channel.basic_get("simple", no_ack=True).payload
    until(lambda: simple.qsize() > 0, "the size counts the jobs of all nodes")
    simple.close()
    assert channel.queue_purge("simple") + 2 == 5


def test_message_with_eta_waits_in_the_broker(connect: Connect, broker: Client, nodes: list[ServerProcess]) -> None:
    eta = datetime.now(UTC) + timedelta(hours=24)
    publish(connect(), queue_named("eta"), "later", headers={"eta": eta.isoformat()})

    details = only_job(broker, nodes, "eta")

    assert 86_300 <= details.delay_s <= 86_400
    assert details.ttl_s >= 30 * 86_400 + 2 * 86_000
    assert Messages(connect(), queue_named("eta")).stays_empty()


def test_expiry_priority_and_retry_are_options_of_the_job(
    connect: Connect, broker: Client, nodes: list[ServerProcess]
) -> None:
    connection = connect(retry=33, expires_grace=100)
    expires = (datetime.now(UTC) + timedelta(seconds=50)).isoformat()
    publish(connection, queue_named("options"), "x", headers={"expires": expires}, priority=200)
    publish(connection, queue_named("exact"), "x", expiration=700)

    details = only_job(broker, nodes, "options")
    assert details.retry_s == 33
    assert details.priority == 200
    assert 100 <= details.ttl_s <= 202
    assert 600 <= only_job(broker, nodes, "exact").ttl_s <= 700


def test_highest_priority_is_delivered_first_however_many_are_fetched(connect: Connect) -> None:
    queue = queue_named("priorities")
    connection = Messages(connect(), queue_named("unused")).connection
    for number in range(30):
        publish(connection, queue, number, priority=number % 3)
    # all at one node, because the order is that of a node
    port = connection.connection.leases.client.node
    consumer = Messages(connection.clone(hostname=f"disque://{port}"), queue, prefetch=1000)

    found = [message.payload for message in consumer.take(30)]

    assert found == sorted(range(30), key=lambda number: (-(number % 3), number))
    consumer.connection.release()


def test_publish_that_kombu_repeats_after_a_lost_answer_adds_one_message(connect: Connect, broker: Client) -> None:
    queue = queue_named("repeated")
    connection = connect()
    client = connection.default_channel.client
    add, lost = client.add, [ConnectionLost("the answer was lost")]

    def add_and_lose_the_answer(*arguments: Any, **options: Any) -> JobId:
        job_id: JobId = add(*arguments, **options)
        if lost:
            raise lost.pop()
        return job_id

    client.add = add_and_lose_the_answer
    publish(connection, queue, "once", retry=True)
    publish(connection, queue, "another")

    until(lambda: not lost and broker.qcount("repeated").queued == 2, "one message for each publish")


def test_child_process_leaves_the_messages_of_its_parent_alone(connect: Connect) -> None:
    queue = queue_named("forked")
    connection = connect()
    publish(connection, queue, "held")
    messages = Messages(connect(), queue)
    messages.take(1)

    def child() -> None:
        publish(connection, queue, f"from {os.getppid()}")
        messages.connection.release()
        connection.release()

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join(30)

    assert process.exitcode == 0
    [message] = messages.take(1)
    assert message.payload == f"from {os.getpid()}"
    assert messages.stays_empty()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"retry": 0}, "transport option 'retry' must be an integer from 1 to 86400, not 0"),
        ({"ttl": "long"}, "transport option 'ttl' must be an integer from 60 to 315360000, not 'long'"),
        ({"retrys": 5}, "unknown transport option 'retrys'; did you mean 'retry'?"),
        ({"socket_timeouts": 5}, "unknown transport option 'socket_timeouts'; did you mean 'socket_timeout'?"),
        ({"queue_order_strategy": "random"}, "must be round_robin, sorted or priority, not 'random'"),
    ],
)
def test_wrong_option_is_refused_with_what_it_must_be(connect: Connect, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(problem)):
        connect(**options).connect()
