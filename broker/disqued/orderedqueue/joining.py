"""CREDIT, JOIN, PART, NODE and CONF: consumers, their nodes and the settings. The start of a new leader."""

from __future__ import annotations

from disqued.orderedqueue import effects as codes
from disqued.orderedqueue.commands import Credit, Join, Node, Part
from disqued.orderedqueue.effects import Effects
from disqued.orderedqueue.options import Settings
from disqued.orderedqueue.state import State


def credit(state: State, command: Credit, effects: Effects) -> None:
    """Set the credit of a consumer; the value is what it has after that.

    Without SINGLE, a consumer is a node, and its first credit makes it join.
    """
    service = state.service
    consumer = service.by_name.get(command.consumer)
    if (command.consumer if consumer is None else consumer.agent) in state.down:
        effects.code = codes.NODE_DOWN
        return
    if consumer is None or not consumer.present:
        if state.options.single:
            effects.code = codes.NO_CONSUMER
            return
        consumer = service.add(command.consumer, command.consumer, state.now_ms)
    count = command.count
    if command.seen >= 0:
        count -= max(consumer.assigned - command.seen, 0)
    consumer.seen_ms = state.now_ms
    consumer.away_ms = 0
    service.set_credit(consumer, max(count, 0), ahead=command.ahead)
    effects.value = consumer.credit


def join(state: State, command: Join, effects: Effects) -> None:
    """Add a consumer, or let one begin again without credit: it keeps its jobs and its place."""
    if command.agent in state.down:
        effects.code = codes.NODE_DOWN
        return
    service = state.service
    consumer = service.by_name.get(command.consumer)
    if consumer is None or not consumer.present:
        consumer = service.add(command.consumer, command.agent, state.now_ms)
    consumer.agent = command.agent
    consumer.named = command.named
    consumer.seen_ms = state.now_ms
    consumer.away_ms = 0
    consumer.assigned = 0
    service.set_credit(consumer, 0)
    state.activate(effects)


def part(state: State, command: Part, effects: Effects) -> None:
    """A consumer leaves, or the connection of a named one was closed."""
    consumer = state.service.by_name.get(command.consumer)
    if consumer is None or not consumer.present:
        effects.code = codes.NO_CONSUMER
        return
    if command.away and consumer.named:
        _leave_for_a_time(state, consumer.name)
    else:
        state.remove_consumer(consumer, effects)


def _leave_for_a_time(state: State, name: bytes) -> None:
    """A named consumer gets nothing until it joins again; after `consumer-timeout` it is removed."""
    consumer = state.service.by_name[name]
    if consumer.away_ms == 0:
        consumer.away_ms = state.now_ms
    state.service.set_credit(consumer, 0)
    state.service.watch(consumer)


def node(state: State, command: Node, effects: Effects) -> None:
    """A node is down or up again.

    Its consumers of a SINGLE queue leave. Otherwise its jobs stay leased: workers may acknowledge them at other nodes.
    """
    if command.up:
        state.down.pop(command.agent, None)
        return
    state.down[command.agent] = True
    service = state.service
    for consumer in [one for one in service.by_name.values() if one.agent == command.agent and one.present]:
        if consumer.named:
            _leave_for_a_time(state, consumer.name)
        elif state.options.single:
            state.remove_consumer(consumer, effects)
        else:
            service.remove(consumer)
            effects.add_parted(consumer.name)


def forget_credit(state: State) -> None:
    """Take the credit of all consumers, because a new leader leads: some may have been lost with the old one.

    They keep their places in the service queue, and their jobs. Those that waited for jobs get time to ask again.
    """
    for consumer in list(state.service.by_name.values()):
        if consumer.credit > 0 or consumer.ahead:
            consumer.seen_ms = state.now_ms
        state.service.set_credit(consumer, 0)


def configure(state: State, settings: Settings, effects: Effects) -> None:
    """Replace the settings. A shorter `consumer-timeout` holds at once."""
    state.settings = settings
    state.service.timeout_ms = settings.consumer_timeout_ms
    state.remove_overdue(effects)
