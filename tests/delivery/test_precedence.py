"""Which of two nodes keeps a job that both queued: all nodes must agree on it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from disqued.delivery.queued import precedes

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
node_ids = st.text("0123456789abcdef", min_size=40, max_size=40).map(str.encode)
job_ids = st.text(LETTERS, min_size=24, max_size=24).map(lambda random: b"D-0badcafe-" + random.encode() + b"-05a1")


def masked(job_id: bytes, node_id: bytes) -> bytes:
    """The definition in its plain form: the node's ID XOR the random part of the job's ID, repeated."""
    mask = (job_id[11:35] * 2)[:40]
    return bytes(left ^ right for left, right in zip(node_id, mask, strict=True))


@given(job_ids, node_ids, node_ids)
def test_node_with_the_greater_masked_id_precedes(job_id: bytes, one: bytes, other: bytes) -> None:
    assert precedes(job_id, one, other) == (masked(job_id, one) > masked(job_id, other))


@given(job_ids, st.lists(node_ids, min_size=2, max_size=7, unique=True))
def test_of_any_number_of_nodes_exactly_one_precedes_all_others(job_id: bytes, nodes: list[bytes]) -> None:
    winners = [one for one in nodes if all(precedes(job_id, one, other) for other in nodes if other != one)]
    assert len(winners) == 1


def test_a_node_does_not_precede_itself() -> None:
    job_id, node_id = b"D-0badcafe-" + b"A" * 24 + b"-05a1", b"5" * 40
    assert not precedes(job_id, node_id, node_id)


def test_no_node_precedes_for_every_job() -> None:
    low, high = b"0" * 40, b"f" * 40
    outcomes = {precedes(b"D-0badcafe-" + letter.encode() * 24 + b"-05a1", high, low) for letter in LETTERS}
    assert outcomes == {True, False}


def test_precedence_differs_from_a_plain_comparison_of_ids() -> None:
    assert precedes(b"D-0badcafe-" + b"z" * 24 + b"-05a1", b"0" * 40, b"a" + b"0" * 39) == (0x30 ^ 0x7A > 0x61 ^ 0x7A)
    assert precedes(b"D-0badcafe-" + b"z" * 24 + b"-05a1", b"0" * 40, b"a" + b"0" * 39)
