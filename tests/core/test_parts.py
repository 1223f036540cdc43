"""What waits in a dict is taken in parts, the oldest first."""

from __future__ import annotations

import pytest

from disqued.core.runtime.parts import first_keys


@pytest.mark.parametrize(
    ("waiting", "most", "expected"),
    [
        ([], 2, []),
        ([b"a"], 2, [b"a"]),
        ([b"a", b"b", b"c"], 2, [b"a", b"b"]),
        ([b"a", b"b"], 0, []),
    ],
    ids=["nothing", "less than a part", "more than a part", "an empty part"],
)
def test_first_keys_are_the_oldest_at_most_so_many(waiting: list[bytes], most: int, expected: list[bytes]) -> None:
    assert first_keys(dict.fromkeys(waiting), most) == expected


def test_a_dict_is_emptied_part_by_part_while_keys_are_added() -> None:
    waiting: dict[bytes, None] = dict.fromkeys([b"1", b"2", b"3"])
    taken: list[bytes] = []
    while waiting:
        for key in first_keys(waiting, 2):
            del waiting[key]
            taken.append(key)
            if key == b"1":
                waiting[b"4"] = None
    assert taken == [b"1", b"2", b"3", b"4"]
