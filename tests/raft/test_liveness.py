"""When replicas become silent and are heard again."""

from __future__ import annotations

from disqued.raft.liveness import Liveness


def test_replica_is_heard_until_it_expires() -> None:
    liveness = Liveness(100)
    assert not liveness.heard(b"a")
    assert liveness.hear(b"a", 1000), "it was never heard"
    assert not liveness.hear(b"a", 1050)
    assert liveness.expire(1149) == []
    assert liveness.heard(b"a")
    assert liveness.heard_ms(b"a") == 1050
    assert liveness.expire(1150) == [b"a"]
    assert not liveness.heard(b"a")
    assert liveness.heard_ms(b"a") == -1
    assert liveness.hear(b"a", 1200), "it was silent"


def test_denial_counts_for_one_replica_and_term_until_the_leader_is_heard() -> None:
    liveness = Liveness(100)
    liveness.deny(b"a", 7, 3)
    assert liveness.denies(b"a", 7, 3)
    assert not liveness.denies(b"a", 7, 4)
    assert not liveness.denies(b"b", 7, 3)
    assert not liveness.denies(b"a", 8, 3)
    liveness.admit(7)
    assert not liveness.denies(b"a", 7, 3)
    liveness.deny(b"a", 7, 3)
    liveness.forget_group(7)
    assert not liveness.denies(b"a", 7, 3)
