"""The checkers find each broken promise in a history, and nothing in a right one."""

from __future__ import annotations

import random

from disqued.orderedqueue.add import Add
from disqued.testing.orderedcheckers import Acked, Added, Delivered, OrderedHistory, check
from disqued.testing.orderedsearch import ACK, ADD, BACK, NEVER, TAKE, Operation, linearisation
from orderedqueue.scenes import Scene


def history_of(count: int = 3, *, single: bool = False, group: bytes = b"") -> OrderedHistory:
    """Jobs 1 to `count` are added one after the other, delivered to a and b in turn, and acknowledged."""
    history = OrderedHistory(single=single, prefetch=1 if single else 0)
    history.drained = True
    for number in range(1, count + 1):
        add = Added(number, "p", number * 100)
        add.answered_ms = number * 100 + 10
        add.index = number * 10
        add.retry_s = 30
        add.group = group
        history.added.append(add)
        consumer = "a" if single or number % 2 else "b"
        history.delivered.append(Delivered(number, add.index, number * 10 + 1, consumer, number * 100 + 20))
        ack = Acked(number, number * 10 + 1, number * 100 + 30)
        ack.answered_ms = number * 100 + 40
        ack.ended = True
        history.acked.append(ack)
    return history


def test_right_histories_pass() -> None:
    for single in (False, True):
        for group in (b"", b"key"):
            assert check(history_of(single=single, group=group)) == []


def test_lost_job_is_found() -> None:
    history = history_of()
    del history.delivered[1], history.acked[1]
    assert check(history) == ["job 2, added at 210, was never delivered"]
    history.removed[2] = 250
    assert check(history) == []


def test_job_without_an_answer_may_be_lost_or_delivered() -> None:
    history = history_of()
    history.added[1].answered_ms = 0
    history.added[1].index = 0
    assert check(history) == []
    del history.delivered[1], history.acked[1]
    assert check(history) == []


def test_unexpected_and_refused_jobs_are_found() -> None:
    history = history_of()
    history.delivered.append(Delivered(9, 90, 91, "a", 900))
    assert check(history) == ["job 9 was delivered, but nobody added it"]
    history = history_of()
    history.added[2].refused = True
    assert check(history) == ["job 3 was delivered, but its ADDJOB was refused"]


def test_delivery_without_a_cause_is_found() -> None:
    history = history_of()
    del history.acked[2]
    history.delivered.append(Delivered(3, 30, 40, "b", 5000))
    assert check(history) == ["job 3 was delivered to a at 320 and again to b at 5000, without a cause"]
    history.causes[3].append(4000)
    assert check(history) == []
    history.causes.clear()
    history.delivered[-1].at_ms = 320 + 30_000
    assert check(history) == []


def test_job_under_two_indexes_is_found() -> None:
    history = history_of()
    history.delivered.append(Delivered(3, 50, 51, "a", 500))
    assert any("under the indexes [30, 50]" in wrong for wrong in check(history))


def test_key_with_two_jobs_is_found() -> None:
    history = history_of()
    history.added[0].key = history.added[1].key = b"k"
    assert check(history) == ["the key b'k' has the jobs [10, 20]"]


def test_index_against_real_time_is_found() -> None:
    history = history_of()
    for one in (history.added[2], history.delivered[2]):
        one.index = 15
    assert any("was answered at 210, before job 3 with index 15 was sent at 300" in wrong for wrong in check(history))


def test_adds_at_the_same_time_may_have_any_order() -> None:
    history = history_of(2)
    history.added[1].sent_ms = 105
    history.added[0].index, history.added[1].index = 20, 10
    history.delivered[0].index, history.delivered[1].index = 20, 10
    assert check(history) == []


def test_first_deliveries_out_of_order_are_found() -> None:
    history = history_of(3)
    history.delivered[0].claim, history.delivered[2].claim = 31, 11
    history.acked[0].claim, history.acked[2].claim = 31, 11
    assert "a got index 10 for the first time after index 30" in check(history)


def test_repeated_job_after_a_later_one_is_found_in_single_queues_and_groups() -> None:
    for single, group, scope in ((True, b"", "the queue"), (False, b"key", "group key")):
        history = history_of(single=single, group=group)
        del history.acked[0]
        history.causes[1].append(150)
        history.delivered.append(Delivered(1, 10, 99, "a", 900))
        assert check(history) == [
            f"{scope}: index 10 was assigned under claim 99, after index 30 under claim 31",
        ]


def test_two_active_consumers_are_found() -> None:
    history = history_of(single=True)
    history.delivered[1].consumer = "b"
    history.acked[0].sent_ms = 250
    assert check(history) == ["a ended job 1 at 250 under claim 11, although b was active since 220"]


def test_claims_that_repeat_or_shrink_are_found() -> None:
    history = history_of()
    history.delivered[1].claim = history.acked[1].claim = 11
    assert "claim 11 was given for index 10 and for index 20" in check(history)
    history = history_of()
    history.delivered[2].claim = history.acked[2].claim = 9
    assert "index 30, added after 300, has claim 9, but 21 was known" in check(history)


def test_claim_of_a_job_whose_add_was_repeated_may_be_older_than_the_answer() -> None:
    history = history_of()
    lost = Added(1, "p", 100)
    history.added[0].sent_ms = history.added[0].answered_ms = 350
    for add in (lost, history.added[0]):
        add.key = b"key"
    history.added.insert(0, lost)
    assert check(history) == []


def test_stale_claim_that_was_accepted_is_found() -> None:
    history = history_of()
    history.causes[3].append(330)
    history.delivered.append(Delivered(3, 30, 40, "b", 340))
    history.acked[2].sent_ms = 350
    assert "job 3 was ended under the stale claim 31, sent at 350" in check(history)


def test_delivery_after_an_answered_acknowledgement_is_found() -> None:
    history = history_of()
    history.causes[3].append(400)
    history.delivered.append(Delivered(3, 30, 40, "b", 500))
    assert check(history) == ["job 3, ended at 340 under claim 31, was delivered to b at 500 under claim 40"]


def test_acknowledgement_without_an_answer_proves_nothing() -> None:
    history = history_of()
    history.causes[3].append(400)
    history.acked[2].ended = False
    history.delivered.append(Delivered(3, 30, 40, "b", 500))
    assert check(history) == []


def test_histories_of_the_machine_pass() -> None:
    for seed in range(10):
        assert check(random_history(seed)) == []


def random_history(seed: int) -> OrderedHistory:
    """Producers and consumers at random on one machine; each entry is one millisecond later than the one before."""
    chance = random.Random(seed)
    single = seed % 2 == 1
    history = OrderedHistory(single=single, prefetch=1 if single else 0)
    scene = Scene(single=single, prefetch=history.prefetch)
    names = [b"a", b"b", b"c"]
    for name in names:
        scene.join(name, credit=0)
    numbers: dict[int, int] = {}
    for step in range(600):
        scene.now_ms += chance.choice((1, 1, 1, 5000))
        kind = chance.randrange(10)
        leased = [job for name in names for job in scene.machine.leases(name)]
        if kind < 4:
            add = Added(step, "p", scene.now_ms)
            command = Add(30, 86_400)
            add.group = command.group = chance.choice((b"", b"x", b"y"))
            effects = scene.apply(command.encode(b""))
            add.answered_ms, add.index, add.retry_s = scene.now_ms, int(effects.value), 30
            numbers[add.index] = step
            history.added.append(add)
        elif kind < 6 or not leased:
            effects = scene.credit(chance.choice(names), chance.randrange(3))
        elif kind < 9:
            job = chance.choice(leased)
            claim = int(job.claim) - (chance.random() < 0.1)
            ack = Acked(numbers[int(job.index)], claim, scene.now_ms)
            effects = scene.ack(int(job.index), claim)
            ack.answered_ms, ack.ended = scene.now_ms, effects.value == 1
            history.acked.append(ack)
        else:
            job = chance.choice(leased)
            history.causes[numbers[int(job.index)]].append(scene.now_ms)
            effects = scene.nack(int(job.index), delay_ms=chance.choice((0, 1000)))
        history.delivered += [
            Delivered(numbers[int(one.index)], int(one.index), int(one.claim), one.consumer.decode(), scene.now_ms)
            for one in effects.assigned
        ]
    assert len(history.delivered) > 50
    return history


# The search


def explained(*operations: Operation) -> bool:
    return linearisation(list(operations)) is not None


def test_jobs_taken_in_the_order_of_their_adds_are_linearisable() -> None:
    assert explained(
        Operation(ADD, 1, 0, 1), Operation(ADD, 2, 2, 3), Operation(TAKE, 1, 4, 5), Operation(TAKE, 2, 6, 7)
    )
    assert not explained(Operation(ADD, 1, 0, 1), Operation(ADD, 2, 2, 3), Operation(TAKE, 2, 4, 5))


def test_adds_at_the_same_time_may_be_taken_in_any_order() -> None:
    assert explained(Operation(ADD, 1, 0, 9), Operation(ADD, 2, 0, 9), Operation(TAKE, 2, 10, 11))


def test_job_is_not_taken_twice_unless_it_was_given_back() -> None:
    first = (Operation(ADD, 1, 0, 1), Operation(TAKE, 1, 2, 3))
    again = Operation(TAKE, 1, 8, 9)
    assert not explained(*first, again)
    assert explained(*first, Operation(BACK, 1, 4, 5), again)
    assert not explained(*first, Operation(ACK, 1, 4, 5), again)


def test_job_that_was_given_back_comes_before_later_ones() -> None:
    before = [Operation(ADD, 1, 0, 1), Operation(ADD, 2, 2, 3), Operation(TAKE, 1, 4, 5), Operation(BACK, 1, 6, 7)]
    assert explained(*before, Operation(TAKE, 1, 8, 9))
    assert not explained(*before, Operation(TAKE, 2, 8, 9))


def test_empty_answer_needs_an_empty_queue() -> None:
    assert not explained(Operation(ADD, 1, 0, 1), Operation(TAKE, 0, 2, 3, ok=False))
    assert explained(Operation(ADD, 1, 0, 4), Operation(TAKE, 0, 2, 3, ok=False))


def test_operation_without_an_answer_may_have_happened_or_not() -> None:
    lost_add = Operation(ADD, 1, 0, NEVER)
    assert explained(lost_add, Operation(TAKE, 1, 50, 51))
    assert explained(lost_add, Operation(TAKE, 0, 50, 51, ok=False))
    lost_take = Operation(TAKE, 0, 2, NEVER)
    assert explained(Operation(ADD, 1, 0, 1), Operation(ADD, 2, 1, 2), lost_take, Operation(TAKE, 2, 8, 9))


def test_second_acknowledgement_does_nothing() -> None:
    taken = (Operation(ADD, 1, 0, 1), Operation(TAKE, 1, 2, 3), Operation(ACK, 1, 4, 5))
    assert explained(*taken, Operation(ACK, 1, 6, 7, ok=False))
    assert not explained(*taken, Operation(ACK, 1, 6, 7))


def test_long_history_with_few_operations_at_the_same_time_is_decided_quickly() -> None:
    operations: list[Operation] = []
    for number in range(40):
        at = 10 * number
        operations.append(Operation(ADD, number, at, at + 12))
        operations.append(Operation(TAKE, number, at + 5, at + 25))
        operations.append(Operation(ACK, number, at + 20, at + 38))
    assert explained(*operations)
    operations[-2].value = 3
    assert not explained(*operations)
