"""Exchanges whose queues other processes have bound: remote control, events, and exchanges of programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kombu import Exchange, Queue

from disqued.client import Client
from disqued.kombu.bindings import PREFIX
from disqued.testing.processes import ServerProcess
from kombu_transport.messages import Messages, until

Connect = Callable[..., Any]


def send(connection: Any, exchange: Exchange, key: str, body: Any) -> None:
    connection.Producer(exchange=exchange).publish(body, routing_key=key)


def at_node(connect: Connect, node: ServerProcess) -> Any:
    """A connection that uses one node only."""
    return connect(discover=False).clone(hostname=f"disque://127.0.0.1:{node.port}")


def temporary(name: str, exchange: Exchange, key: str = "") -> Queue:
    return Queue(name, exchange, routing_key=key, auto_delete=True, durable=False)


def test_fanout_reaches_queues_that_were_bound_just_now_through_any_node(
    connect: Connect, nodes: list[ServerProcess]
) -> None:
    exchange = Exchange("news", "fanout", durable=False)
    publishers = [at_node(connect, node) for node in nodes]
    first = Messages(connect(), temporary("news.1", exchange))
    for number, publisher in enumerate(publishers):
        send(publisher, exchange, "", number)
    assert sorted(message.payload for message in first.take(3)) == [0, 1, 2]

    second = Messages(connect(), temporary("news.2", exchange))
    for publisher in publishers:
        send(publisher, exchange, "", "x")
    assert len(first.take(3)) == len(second.take(3)) == 3

    second.consumer.cancel()
    send(publishers[0], exchange, "", "y")
    assert len(first.take(1)) == 1
    assert second.stays_empty()
    for publisher in publishers:
        publisher.release()


def test_direct_reply_reaches_a_queue_that_was_bound_after_the_last_look(connect: Connect) -> None:
    exchange = Exchange("replies", "direct", durable=False)
    publisher = connect(bindings_cache=3600)
    send(publisher, exchange, "nobody", "lost")
    waiting = Messages(connect(), temporary("replies.1", exchange, "k1"))

    send(publisher, exchange, "k1", "found")

    assert [message.payload for message in waiting.take(1)] == ["found"]


def test_topic_patterns_of_other_processes_match(connect: Connect) -> None:
    exchange = Exchange("celeryev-like", "topic", durable=False)
    everything = Messages(connect(), temporary("all", exchange, "#"), no_ack=True)
    tasks = Messages(connect(), temporary("tasks", exchange, "task.*"), no_ack=True)
    publisher = connect()

    for key in ("worker.online", "task.sent", "task.a.b"):
        send(publisher, exchange, key, key)

    assert [message.payload for message in everything.take(3)] == ["worker.online", "task.sent", "task.a.b"]
    assert [message.payload for message in tasks.take(1)] == ["task.sent"]
    assert tasks.stays_empty()


def test_producer_that_knows_only_the_exchange_reaches_a_lasting_queue_after_its_consumer_ended(
    connect: Connect, broker: Client
) -> None:
    exchange = Exchange("media", "direct")
    consumer = connect()
    Queue("video", exchange, routing_key="v")(consumer.channel()).declare()
    Queue("audio", exchange, routing_key="a")(consumer.channel()).declare()
    consumer.release()

    send(connect(), exchange, "v", "film")

    until(lambda: broker.qcount("video").queued == 1, "the film is in the queue")
    assert broker.qcount("audio").queued == 0


def test_usual_queue_of_celery_leaves_no_binding(connect: Connect, broker: Client) -> None:
    connection = connect()
    Queue("celery", Exchange("celery"), routing_key="celery")(connection.channel()).declare()
    send(connect(), Exchange("celery"), "celery", "x")

    until(lambda: broker.qcount("celery").queued == 1, "it is in the queue of the exchange's name")
    assert broker.qpeek(f"{PREFIX}celery") == []


def test_binding_of_a_consumer_that_ends_is_withdrawn_on_all_nodes(
    connect: Connect, nodes: list[ServerProcess]
) -> None:
    exchange = Exchange("brief", "fanout", durable=False)
    messages = Messages(connect(), temporary("brief.1", exchange))
    assert [int(node.ask(f"QLEN {PREFIX}brief")) for node in nodes] == [1, 1, 1]

    messages.connection.release()

    assert [int(node.ask(f"QLEN {PREFIX}brief")) for node in nodes] == [0, 0, 0]


def test_deleted_queue_gets_nothing_and_keeps_nothing(connect: Connect, broker: Client) -> None:
    exchange = Exchange("deleted", "fanout")
    connection = connect()
    queue = Queue("deleted.1", exchange)(connection.channel())
    queue.declare()
    send(connection, exchange, "", "before")
    until(lambda: broker.qcount("deleted.1").queued == 1, "one message")

    queue.delete()
    send(connection, exchange, "", "after")

    until(lambda: broker.qcount("deleted.1").queued == 0, "none")
