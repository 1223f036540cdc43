"""Which name each setting of a queue comes from."""

from __future__ import annotations

import pytest

from disqued.core.queues.queue import PAUSED_IN
from disqued.core.queues.settings import NONE, SETTINGS, QueueSettings, dead_queue, fault
from disqued.core.queues.settingsindex import SettingsIndex


def index_of(*rows: tuple[str, str, str]) -> SettingsIndex:
    """An index with (name, setting, value) rows."""
    index = SettingsIndex()
    for name, setting, value in rows:
        index.set(name.encode(), setting.encode(), value.encode())
    return index


def resolved(index: SettingsIndex, queue: str) -> QueueSettings:
    found = index.resolve(queue.encode())
    assert found is not None
    return found


def source(index: SettingsIndex, queue: str, setting: str) -> tuple[bytes, bytes]:
    """The value and the name it comes from."""
    (row,) = [(value, name) for key, value, name in index.sources(queue.encode()) if key == setting.encode()]
    return row


def test_exact_name_wins_over_patterns_and_a_longer_pattern_over_a_shorter_one() -> None:
    rows = (("*", "ttl", "1"), ("mail*", "ttl", "2"), ("mail:*", "ttl", "3"), ("mail:eu", "ttl", "4"))
    for order in (rows, rows[::-1]):
        index = index_of(*order)
        found = [resolved(index, queue).ttl_s for queue in ("jobs", "mailbox", "mail:us", "mail:eu")]
        assert found == [1, 2, 3, 4]


def test_of_two_patterns_of_equal_length_the_greater_name_wins() -> None:
    index = index_of(("a*", "ttl", "1"), ("*b", "ttl", "2"))
    assert resolved(index, "ab").ttl_s == 1


def test_each_setting_comes_from_the_best_name_that_sets_it() -> None:
    index = index_of(("*", "retry", "10"), ("*", "limit", "5"), ("mail", "limit", "3"), ("mail", "ttl", "60"))
    settings = resolved(index, "mail")
    assert (settings.retry_s, settings.limit, settings.ttl_s) == (10, 3, 60)
    assert source(index, "mail", "retry") == (b"10", b"*")
    assert source(index, "mail", "limit") == (b"3", b"mail")
    assert source(index, "mail", "dead") == (b"mail.dead", b"")


def test_only_a_limit_of_the_exact_name_is_exact() -> None:
    index = index_of(("*", "limit", "5"), ("mail", "limit", "3"), ("other", "ttl", "9"))
    assert resolved(index, "mail").limit_is_exact
    assert not resolved(index, "other").limit_is_exact
    assert not resolved(index, "third").limit_is_exact


def test_none_overrides_the_value_of_a_pattern() -> None:
    index = index_of(("*", "maxlen", "10"), ("big", "maxlen", "none"), ("*", "pause", "in"), ("big", "pause", "none"))
    assert resolved(index, "small").bounded
    assert resolved(index, "small").pause == PAUSED_IN
    assert not resolved(index, "big").bounded
    assert resolved(index, "big").pause == 0


def test_removed_settings_no_longer_hold_and_an_empty_index_costs_nothing() -> None:
    index = index_of(("mail*", "ttl", "1"), ("mail", "ttl", "2"))
    index.unset(b"mail", b"ttl")
    assert resolved(index, "mail").ttl_s == 1
    index.unset(b"mail*", b"ttl")
    assert index.resolve(b"mail") is None
    assert not index.some
    index.unset(b"mail*", b"ttl")


def test_queues_without_matching_names_have_no_settings() -> None:
    index = index_of(("mail", "ttl", "1"), ("x?", "ttl", "2"), ("[ab]c", "ttl", "3"), ("q\\*", "ttl", "4"))
    assert index.resolve(b"other") is None
    assert resolved(index, "xy").ttl_s == 2
    assert resolved(index, "ac").ttl_s == 3
    assert resolved(index, "q*").ttl_s == 4
    assert index.resolve(b"qx") is None


def test_queues_with_the_same_settings_share_one_value() -> None:
    index = index_of(("mail*", "ttl", "1"))
    assert index.resolve(b"mail1") is index.resolve(b"mail2")


def test_very_long_names_have_no_settings() -> None:
    index = index_of(("*", "ttl", "1"))
    assert index.resolve(b"x" * 1024) is not None
    assert index.resolve(b"x" * 1025) is None


def test_dead_letters_arrive_beside_their_queue_unless_set() -> None:
    assert dead_queue(None, b"mail") == b"mail.dead"
    index = index_of(("mail", "ttl", "1"), ("jobs", "dead", "morgue"), ("log", "dead", "drop"))
    assert dead_queue(index.resolve(b"mail"), b"mail") == b"mail.dead"
    assert dead_queue(index.resolve(b"jobs"), b"jobs") == b"morgue"
    assert resolved(index, "log").drops_dead


def test_values_are_parsed() -> None:
    index = index_of(("q", "backoff", "100 60000 1.5"), ("q", "copy-to", 'a "b c"'), ("q", "priority", "-3"))
    settings = resolved(index, "q")
    assert (settings.backoff_min_ms, settings.backoff_max_ms, settings.backoff_factor) == (100, 60000, 1.5)
    assert settings.copy_to == (b"a", b"b c")
    assert settings.priority == -3
    assert (settings.retry_s, settings.limit, settings.max_length) == (NONE, NONE, NONE)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("retry", "-1"),
        ("retry", ""),
        ("retry", "soon"),
        ("ttl", "0"),
        ("ttl", "4294967296"),
        ("replicate", "0"),
        ("replicate", "65536"),
        ("priority", "2147483648"),
        ("priority", "none"),
        ("retain", "2592001"),
        ("maxlen", "0"),
        ("maxbytes", "1e3"),
        ("overflow", "drop"),
        ("backoff", "100"),
        ("backoff", "100 50"),
        ("backoff", "0 50"),
        ("backoff", "1 50 0.5"),
        ("backoff", "1 50 nan"),
        ("backoff", "1 50 inf"),
        ("backoff", "1 50 2 2"),
        ("limit", "0"),
        ("dead", ""),
        ("dead-ttl", "0"),
        ("dead-expired", "maybe"),
        ("pause", "both"),
        ("copy-to", ""),
        ("copy-to", '"open'),
        ("copy-to", "a " * 17),
        ("dead", "x" * 1025),
    ],
)
def test_wrong_values_are_refused_with_what_they_must_be(setting: str, value: str) -> None:
    why = fault(SETTINGS[setting.encode()], value.encode())
    assert why.startswith(("must ", "needs "))
