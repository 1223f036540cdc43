"""Checks of the promises of ordered queues (Q1 to Q6), from what clients sent and received.

A workload notes in an `OrderedHistory` each add, delivery and acknowledgement of one queue, with the times of the
client that saw it. Each job has a number, which is in its body. `check` returns what contradicts the promises, one
sentence for each; an empty list says that nothing does. The checks are pure: simulator and real processes use the same.

An answer that a client did not get proves nothing: such an add may have added the job or not, and such an
acknowledgement may have ended it or not. All times must be of one clock.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from typing import Final

NOT_ANSWERED: Final = 0


class Added:
    """An ADDJOB."""

    def __init__(self, number: int, producer: str, sent_ms: int) -> None:
        self.number = number
        """The number in the body; a repeated ADDJOB of the same job has the same one."""
        self.producer = producer
        self.sent_ms = sent_ms
        self.answered_ms = NOT_ANSWERED
        self.index = 0
        """The index in the ID that was the answer; 0 without one."""
        self.refused = False
        """Whether the answer was an error that says that nothing was added."""
        self.retry_s = 0
        self.expires_ms = 0
        """When the life of the job ends at the earliest; 0 for never."""
        self.delayed = False
        """Whether it had a DELAY: the promises about order do not cover such jobs."""
        self.group = b""
        self.key = b""
        """The key of deduplication; the workload repeats a key only within its window."""


class Delivered:
    """A job that a consumer received."""

    def __init__(self, number: int, index: int, claim: int, consumer: str, at_ms: int) -> None:
        self.number = number
        self.index = index
        self.claim = claim
        self.consumer = consumer
        self.at_ms = at_ms


class Acked:
    """An ACKJOB of one job."""

    def __init__(self, number: int, claim: int, sent_ms: int) -> None:
        self.number = number
        self.claim = claim
        """0 if it named none."""
        self.sent_ms = sent_ms
        self.answered_ms = NOT_ANSWERED
        self.ended = False
        """Whether the answer says that it ended the job."""


class OrderedHistory:
    """What the clients of one queue saw."""

    def __init__(self, *, single: bool = False, prefetch: int = 0) -> None:
        self.single = single
        self.prefetch = prefetch
        self.added: list[Added] = []
        self.delivered: list[Delivered] = []
        self.acked: list[Acked] = []
        self.causes: dict[int, list[int]] = defaultdict(list)
        """Times at which something happened to a job that has it delivered again, by its number: a NACK, a WORKING that
        was late, a consumer that left, a node that went down."""
        self.removed: dict[int, int] = {}
        """When jobs left the queue in another way, by number: DELJOB, a dead letter, a move, a purge."""
        self.drained = False
        """Whether consumers took and acknowledged jobs at the end until there were none."""


def check(history: OrderedHistory) -> list[str]:
    """What contradicts the promises."""
    return [
        *check_total(history),
        *check_keys(history),
        *check_real_time(history),
        *check_consumers(history),
        *check_strict_order(history),
        *check_claims(history),
        *check_acknowledged(history),
    ]


def _by_claim(history: OrderedHistory) -> list[Delivered]:
    """The deliveries in the order in which the queue assigned them."""
    return sorted(history.delivered, key=lambda one: one.claim)


def _adds_by_number(history: OrderedHistory) -> dict[int, list[Added]]:
    found: dict[int, list[Added]] = defaultdict(list)
    for add in history.added:
        found[add.number].append(add)
    return found


def check_total(history: OrderedHistory) -> list[str]:
    """Q1: no job is lost, none appears that nobody added, none is delivered twice without a cause."""
    wrong: list[str] = []
    adds = _adds_by_number(history)
    deliveries: dict[int, list[Delivered]] = defaultdict(list)
    for delivery in _by_claim(history):
        deliveries[delivery.number].append(delivery)
    for number, found in deliveries.items():
        if number not in adds:
            wrong.append(f"job {number} was delivered, but nobody added it")
        elif all(add.refused for add in adds[number]):
            wrong.append(f"job {number} was delivered, but its ADDJOB was refused")
        else:
            wrong += _doubled(history, adds[number], found)
    if history.drained:
        for number, attempts in adds.items():
            answered = [add for add in attempts if add.answered_ms and not add.refused]
            is_safe = bool(answered) and all(add.expires_ms == 0 for add in answered)
            if is_safe and number not in deliveries and number not in history.removed:
                wrong.append(f"job {number}, added at {answered[0].answered_ms}, was never delivered")
    return wrong


def _doubled(history: OrderedHistory, attempts: list[Added], found: list[Delivered]) -> list[str]:
    """Deliveries of one job without a cause. Each ADDJOB that was repeated without a key may have added it again."""
    wrong: list[str] = []
    number = found[0].number
    indexes = sorted({delivery.index for delivery in found})
    accepted = [add for add in attempts if not add.refused]
    possible = 1 if accepted[0].key else len(accepted)
    if len(indexes) > possible:
        wrong.append(f"job {number} was delivered under the indexes {indexes}, but added {possible} times")
    known = sorted({add.index for add in accepted if add.index})
    unknown = sum(1 for add in accepted if not add.answered_ms)
    if len(set(indexes) - set(known)) > unknown:
        wrong.append(f"job {number} was delivered under the indexes {indexes}, and its IDs have {known}")
    retry_ms = accepted[0].retry_s * 1000
    for index in indexes:
        same = [delivery for delivery in found if delivery.index == index]
        for before, after in pairwise(same):
            is_over = 0 < retry_ms <= after.at_ms - before.at_ms
            if not is_over and not any(at_ms <= after.at_ms for at_ms in history.causes.get(number, ())):
                wrong.append(
                    f"job {number} was delivered to {before.consumer} at {before.at_ms} and again to {after.consumer} "
                    f"at {after.at_ms}, without a cause"
                )
    return wrong


def check_keys(history: OrderedHistory) -> list[str]:
    """Q6: all adds under one key are one job."""
    indexes: dict[bytes, set[int]] = defaultdict(set)
    for add in history.added:
        if add.key and add.index:
            indexes[add.key].add(add.index)
    return [f"the key {key!r} has the jobs {sorted(found)}" for key, found in sorted(indexes.items()) if len(found) > 1]


def check_real_time(history: OrderedHistory) -> list[str]:
    """Q3: if A was answered before B was sent, A is before B in the log."""
    known = [add for add in history.added if add.index and not add.key]
    answered = sorted(known, key=lambda add: add.answered_ms)
    wrong: list[str] = []
    place = 0
    last: Added | None = None
    for add in sorted(known, key=lambda one: one.sent_ms):
        while place < len(answered) and answered[place].answered_ms < add.sent_ms:
            if last is None or answered[place].index > last.index:
                last = answered[place]
            place += 1
        if last is not None and last.index >= add.index:
            wrong.append(
                f"job {last.number} with index {last.index} was answered at {last.answered_ms}, before job "
                f"{add.number} with index {add.index} was sent at {add.sent_ms}"
            )
    return wrong


def check_consumers(history: OrderedHistory) -> list[str]:
    """Q3: each consumer gets the jobs that nobody had before in the order of the log.

    Jobs with a group key may come later, because they wait for others with their key.
    """
    delayed = {add.number for add in history.added if add.delayed or add.group}
    wrong: list[str] = []
    seen: set[int] = set()
    last: dict[str, Delivered] = {}
    for delivery in _by_claim(history):
        if delivery.index in seen or delivery.number in delayed:
            continue
        seen.add(delivery.index)
        before = last.get(delivery.consumer)
        if before is not None and before.index > delivery.index:
            wrong.append(
                f"{delivery.consumer} got index {delivery.index} for the first time after index {before.index}"
            )
        last[delivery.consumer] = delivery
    return wrong


def check_strict_order(history: OrderedHistory) -> list[str]:
    """Q4 and Q5: in a SINGLE queue with prefetch 1, and within each group key, no job comes after a later one."""
    delayed = {add.number for add in history.added if add.delayed}
    groups = {add.number: add.group for add in history.added}
    wrong: list[str] = []
    last: dict[bytes, Delivered] = {}
    is_strict = history.single and history.prefetch == 1
    for delivery in _by_claim(history):
        if delivery.number in delayed:
            continue
        group = groups.get(delivery.number, b"")
        for scope in ([b"the queue"] if is_strict else []) + ([b"group " + group] if group else []):
            before = last.get(scope)
            if before is not None and before.index > delivery.index:
                wrong.append(
                    f"{scope.decode('latin-1')}: index {delivery.index} was assigned under claim {delivery.claim}, "
                    f"after index {before.index} under claim {before.claim}"
                )
            last[scope] = delivery
    return wrong + (_two_at_once(history) if history.single else [])


def _two_at_once(history: OrderedHistory) -> list[str]:
    """A claim of a former consumer of a SINGLE queue that was accepted after another consumer had got a job."""
    deliveries = _by_claim(history)
    consumers = {delivery.claim: delivery.consumer for delivery in deliveries}
    wrong: list[str] = []
    for ack in history.acked:
        consumer = consumers.get(ack.claim)
        if not ack.ended or consumer is None:
            continue
        for delivery in deliveries:
            if delivery.claim > ack.claim and delivery.consumer != consumer and delivery.at_ms < ack.sent_ms:
                wrong.append(
                    f"{consumer} ended job {ack.number} at {ack.sent_ms} under claim {ack.claim}, although "
                    f"{delivery.consumer} was active since {delivery.at_ms}"
                )
                break
    return wrong


def check_claims(history: OrderedHistory) -> list[str]:
    """Q2: claims are unique, they grow with time, and a job is not ended under a claim that is stale."""
    wrong: list[str] = []
    owners: dict[int, Delivered] = {}
    for delivery in history.delivered:
        other = owners.setdefault(delivery.claim, delivery)
        if (other.index, other.consumer) != (delivery.index, delivery.consumer):
            wrong.append(f"claim {delivery.claim} was given for index {other.index} and for index {delivery.index}")
    received = sorted(history.delivered, key=lambda one: one.at_ms)
    first_ms = {number: min(add.sent_ms for add in adds) for number, adds in _adds_by_number(history).items()}
    sent = {add.index: first_ms[add.number] for add in history.added if add.index}
    place = 0
    greatest = 0
    for delivery in sorted(history.delivered, key=lambda one: sent.get(one.index, 0)):
        sent_ms = sent.get(delivery.index)
        if sent_ms is None:
            continue
        while place < len(received) and received[place].at_ms < sent_ms:
            greatest = max(greatest, received[place].claim)
            place += 1
        if greatest >= delivery.claim:
            wrong.append(
                f"index {delivery.index}, added after {sent_ms}, has claim {delivery.claim}, but {greatest} was known"
            )
    for ack in history.acked:
        newer = [one for one in _of(history.delivered, ack.number) if one.claim > ack.claim > 0]
        if ack.ended and any(one.at_ms < ack.sent_ms for one in newer):
            wrong.append(f"job {ack.number} was ended under the stale claim {ack.claim}, sent at {ack.sent_ms}")
    return wrong


def _of(deliveries: Iterable[Delivered], number: int) -> list[Delivered]:
    return [delivery for delivery in deliveries if delivery.number == number]


def check_acknowledged(history: OrderedHistory) -> list[str]:
    """Q2: a job that was acknowledged with an answer is never delivered again."""
    ends: dict[int, Acked] = {}
    wrong: list[str] = []
    several = {number for number, adds in _adds_by_number(history).items() if len(adds) > 1}
    for ack in history.acked:
        if not ack.ended:
            continue
        if ack.number in ends and ack.number not in several:
            wrong.append(f"job {ack.number} was ended twice, under claims {ends[ack.number].claim} and {ack.claim}")
        ends.setdefault(ack.number, ack)
    for delivery in history.delivered:
        end = ends.get(delivery.number)
        if end is None or delivery.number in several:
            continue
        is_later = delivery.claim > end.claim if end.claim else delivery.at_ms > end.answered_ms
        if is_later:
            wrong.append(
                f"job {delivery.number}, ended at {end.answered_ms} under claim {end.claim}, was delivered to "
                f"{delivery.consumer} at {delivery.at_ms} under claim {delivery.claim}"
            )
    return wrong
