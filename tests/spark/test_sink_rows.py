"""The conversion of DataFrame columns and rows to commands, without a Spark process or a broker."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import types

from pyspark_disque.options import parse
from pyspark_disque.optionvalues import BadOption
from pyspark_disque.rows import SLICE_BYTES, SLICE_ROWS, SLOTS, BadRow, Layout, Slice

KINDS: dict[str, types.DataType] = {
    kind.simpleString(): kind
    for kind in (
        types.StringType(), types.BinaryType(), types.ByteType(), types.ShortType(), types.IntegerType(),
        types.LongType(), types.DoubleType(), types.TimestampType(), types.VarcharType(9), types.CharType(4),
        types.ArrayType(types.StringType()),
    )
}  # fmt: skip


def layout(columns: str, **options: str) -> Layout:
    schema = types.StructType()
    for column in columns.split(", "):
        name, kind = column.split()
        schema.add(name, KINDS[kind])
    return Layout.of(schema, parse({"nodes": "a", **options}, "write"))


def slices(found: Layout, *batches: dict[str, list[Any]], partition: int = 4, prefix: bytes = b"") -> list[Slice]:
    return list(found.slices((pa.RecordBatch.from_pydict(columns) for columns in batches), partition, prefix))


def commands(found: Layout, *batches: dict[str, list[Any]], prefix: bytes = b"") -> list[tuple[bytes | int, ...]]:
    return [words for part in slices(found, *batches, prefix=prefix) for words in part.commands]


# --- columns ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ("queue string", {}, "the column body is missing"),
        ("body string", {}, "no queue to write to; set the option queue, or add a column queue"),
        ("body int", {"queue": "q"}, "the column body must be string or binary, not int"),
        ("body string, queue binary", {}, "the column queue must be string, not binary"),
        ("body string, delay string", {"queue": "q"}, "the column delay must be tinyint or smallint or int or bigint"),
        ("body string, ttl double", {"queue": "q"}, "the column ttl must be .* not double"),
        ("value string", {"queue": "q"}, "unknown column value; rename it to body"),
        ("body string, topic string", {}, "unknown column topic; rename it to queue"),
        ("body string, meta int", {"queue": "q"}, "the column meta must be string or binary, not int"),
        ("body string, priority string", {"queue": "q"}, "the column priority must be tinyint"),
        ("body string, delai int", {"queue": "q"}, "unknown column delai; rename it to delay"),
        ("body string, price int", {"queue": "q"}, "unknown column price; drop it, or make it part of the body"),
        ("body string, after int", {"queue": "q"}, "the column after must be array<string> or string, not int"),
        ("body string, otherwise string", {"queue": "q"}, "otherwise is for jobs that wait for others; add a column"),
        ("body string", {"queue": "q", "otherwise": "run"}, "otherwise is for jobs that wait for others; add a column"),
        ("body string, job_id binary", {"queue": "q"}, "the column job_id must be string, not binary"),
        (
            "body string, job_id string",
            {"queue": "q", "mode": "deduplicated"},
            "the column job_id and the mode deduplicated conflict",
        ),
        (
            "body string, key string",
            {"queue": "q"},
            'the column key requires the mode deduplicated; add .option\\("mode"',
        ),
        (
            "body string, key string",
            {"queue": "q", "mode": "deduplicated", "writeId": "w"},
            "the option writeId and the column key conflict",
        ),
    ],
)
def test_invalid_columns_are_rejected_by_name(columns: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(BadOption, match=message):
        layout(columns, **options)


def test_duplicate_column_is_rejected() -> None:
    with pytest.raises(BadOption, match="duplicate column body; drop one"):
        layout("body string, Body string", queue="q")


def test_columns_of_the_source_are_ignored() -> None:
    found = layout(
        "queue string, id string, body binary, ctime timestamp, nacks int, additional_deliveries int, node string, "
        "state string"
    )
    batch: dict[str, list[Any]] = {
        "queue": ["q"], "id": ["D-x"], "body": [b"b"], "ctime": [1], "nacks": [2], "additional_deliveries": [3],
        "node": ["n"], "state": ["queued"],
    }  # fmt: skip
    assert commands(found, batch) == [(b"ADDJOB", b"q", b"b", 5000)]


def test_priority_and_metadata_are_columns_and_null_leaves_them_out() -> None:
    found = layout("body string, priority bigint, meta string", queue="q")
    batch: dict[str, list[Any]] = {"body": ["a", "b", "c"], "priority": [-3, None, 0], "meta": ["ключ", "", None]}
    assert [words[4:] for words in commands(found, batch)] == [
        (b"PRIORITY", -3, b"META", "ключ".encode()),
        (b"META", b""),
        (b"PRIORITY", 0),
    ]
    binary = commands(layout("body string, meta binary", queue="q"), {"body": ["a"], "meta": [b"\x00\xff"]})
    assert binary == [(b"ADDJOB", b"q", b"a", 5000, b"META", b"\x00\xff")]


def test_option_priority_overrides_its_column() -> None:
    found = layout("body string, priority int", queue="q", priority="7")
    assert commands(found, {"body": ["a"], "priority": [1]}) == [(b"ADDJOB", b"q", b"a", 5000, b"PRIORITY", 7)]


def test_column_names_are_case_insensitive() -> None:
    found = layout("BODY string, Queue string")
    assert commands(found, {"BODY": ["b"], "Queue": ["q"]}) == [(b"ADDJOB", b"q", b"b", 5000)]


def test_char_and_varchar_columns_are_text() -> None:
    found = layout("body char(4), queue varchar(9)")
    assert commands(found, {"body": ["b   "], "queue": ["q"]}) == [(b"ADDJOB", b"q", b"b   ", 5000)]


# --- rows -------------------------------------------------------------------------------------------------------------


def test_text_becomes_utf8_and_binary_is_unchanged() -> None:
    assert commands(layout("body string", queue="größe"), {"body": ["ключ", ""]}) == [
        (b"ADDJOB", "größe".encode(), "ключ".encode(), 5000),
        (b"ADDJOB", "größe".encode(), b"", 5000),
    ]
    assert commands(layout("body binary", queue="q"), {"body": [b"\x00\xff\r\n"]}) == [
        (b"ADDJOB", b"q", b"\x00\xff\r\n", 5000)
    ]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()])
def test_all_arrow_types_of_text_and_bytes_are_accepted(kind: pa.DataType) -> None:
    batch = pa.record_batch([pa.array([b"ab", b"c"], pa.binary()).cast(kind)], names=["body"])
    [part] = layout("body string", queue="q").slices([batch], 0)
    assert [words[2] for words in part.commands] == [b"ab", b"c"]


def test_options_are_arguments_of_all_rows() -> None:
    found = layout(
        "body string", queue="q", delay="5", retry="1m", ttl="1h", replicate="2", maxlen="9", replicateTimeout="7",
        **{"async": "true"},
    )  # fmt: skip
    [words] = commands(found, {"body": ["b"]})
    assert words == (
        b"ADDJOB", b"q", b"b", 7000,
        b"DELAY", 5, b"RETRY", 60, b"TTL", 3600, b"REPLICATE", 2, b"MAXLEN", 9, b"ASYNC",
    )  # fmt: skip


def test_columns_are_arguments_of_their_row_and_null_is_left_out() -> None:
    found = layout("body string, queue string, delay int, retry bigint, ttl smallint, replicate tinyint, maxlen int")
    batch: dict[str, list[Any]] = {
        "body": ["a", "b"], "queue": ["q", "r"],
        "delay": [1, None], "retry": [2, 7], "ttl": [3, None], "replicate": [4, None], "maxlen": [5, None],
    }  # fmt: skip
    assert commands(found, batch) == [
        (b"ADDJOB", b"q", b"a", 5000, b"DELAY", 1, b"RETRY", 2, b"TTL", 3, b"REPLICATE", 4, b"MAXLEN", 5),
        (b"ADDJOB", b"r", b"b", 5000, b"RETRY", 7),
    ]


def test_option_overrides_the_column_of_its_name() -> None:
    found = layout("body string, queue string, ttl int, delay int", queue="mine", ttl="60")
    assert commands(found, {"body": ["b"], "queue": [None], "ttl": [5], "delay": [1]}) == [
        (b"ADDJOB", b"mine", b"b", 5000, b"TTL", 60, b"DELAY", 1)
    ]


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ({"body": ["a", None], "queue": ["q", "q"]}, "the column body must not be null: row 513 of partition 4"),
        ({"body": ["a", "b"], "queue": [None, "q"]}, "the column queue must not be null: row 512 of partition 4"),
        ({"body": ["a", "b"], "queue": ["q", ""]}, "the column queue must not be empty: row 513 of partition 4"),
    ],
)
def test_invalid_row_is_rejected_with_its_position(batch: dict[str, list[Any]], message: str) -> None:
    good: dict[str, list[Any]] = {"body": ["b"] * 512, "queue": ["q"] * 512}
    with pytest.raises(BadRow, match=message):
        slices(layout("body string, queue string"), good, batch)


# --- keys -------------------------------------------------------------------------------------------------------------


def test_generated_keys_number_rows_across_batches() -> None:
    found = layout("body string", queue="q", mode="deduplicated", window="10m")
    words = commands(found, {"body": ["a", "b"]}, {"body": ["c"]}, prefix=b"query/3/4")
    assert [row[-4:] for row in words] == [(b"WINDOW", 600, b"KEY", b"query/3/4/%d" % row) for row in range(3)]


def test_rows_with_generated_keys_share_the_slot_of_their_partition() -> None:
    found = layout("body string", queue="q", mode="deduplicated")
    [part] = slices(found, {"body": ["a", "b"]}, partition=11, prefix=b"w/11")
    assert part.slots == [11, 11]


def test_same_key_has_the_same_slot_in_every_partition() -> None:
    found = layout("body string, key string", queue="q", mode="deduplicated")
    keys = [f"user-{number}" for number in range(100)]
    [one] = slices(found, {"body": keys, "key": keys}, partition=0, prefix=b"w/0")
    [two] = slices(found, {"body": keys[::-1], "key": keys[::-1]}, partition=1, prefix=b"w/1")
    assert [words[-1] for words in one.commands] == [key.encode() for key in keys]
    assert one.slots == two.slots[::-1]
    assert len(set(one.slots)) > 80
    assert all(0 <= slot < SLOTS for slot in one.slots)


@pytest.mark.parametrize(("key", "state"), [(None, "null"), ("", "empty")])
def test_row_without_a_key_is_rejected(key: str | None, state: str) -> None:
    found = layout("body string, key string", queue="q", mode="deduplicated")
    with pytest.raises(BadRow, match=f"the column key must not be {state}: row 1 of partition 4"):
        slices(found, {"body": ["a", "b"], "key": ["k", key]})


# --- tasks ------------------------------------------------------------------------------------------------------------


def test_parents_are_arguments_of_their_row_and_otherwise_is_only_for_rows_with_parents() -> None:
    found = layout("body string, after array<string>, otherwise string", queue="q")
    batch: dict[str, list[Any]] = {
        "body": ["a", "b", "c", "d"], "after": [["D-1", "D-2"], None, [], ["D-3"]],
        "otherwise": ["run", "run", "drop", None],
    }  # fmt: skip
    assert [words[4:] for words in commands(found, batch)] == [
        (b"AFTER", b"D-1", b"AFTER", b"D-2", b"ELSE", b"run"),
        (),
        (),
        (b"AFTER", b"D-3"),
    ]


def test_single_parent_is_text_and_the_option_otherwise_overrides_its_column() -> None:
    found = layout("body string, after string, otherwise string", queue="q", otherwise="drop")
    batch: dict[str, list[Any]] = {"body": ["a", "b"], "after": ["D-1", None], "otherwise": ["run", "run"]}
    assert [words[4:] for words in commands(found, batch)] == [(b"AFTER", b"D-1", b"ELSE", b"drop"), ()]


def test_null_among_the_parents_is_rejected() -> None:
    found = layout("body string, after array<string>", queue="q")
    with pytest.raises(BadRow, match="the column after must not be null: row 1 of partition 4"):
        slices(found, {"body": ["a", "b"], "after": [["D-1"], ["D-1", None]]})


def test_ids_and_retention_are_arguments_of_their_row() -> None:
    found = layout("body string, job_id string, retain int", queue="q")
    words = commands(found, {"body": ["a", "b"], "job_id": ["D-1", "D-2"], "retain": [60, None]}, prefix=b"")
    assert [row[4:] for row in words] == [(b"RETAIN", 60, b"ID", b"D-1"), (b"ID", b"D-2")]
    with pytest.raises(BadRow, match="the column job_id must not be null: row 0 of partition 4"):
        slices(found, {"body": ["a"], "job_id": [None], "retain": [60]})
    assert commands(layout("body string", queue="q", retain="1h"), {"body": ["a"]})[0][4:] == (b"RETAIN", 3600)


# --- slices -----------------------------------------------------------------------------------------------------------


def test_slices_have_a_limited_number_of_rows() -> None:
    parts = slices(layout("body string", queue="q"), {"body": ["b"] * (2 * SLICE_ROWS + 1)}, {"body": ["c"]})
    assert [len(part.commands) for part in parts] == [SLICE_ROWS, SLICE_ROWS, 1, 1]
    assert [part.first for part in parts] == [0, SLICE_ROWS, 2 * SLICE_ROWS, 2 * SLICE_ROWS + 1]


def test_slices_have_a_limited_size_unless_a_single_row_is_larger() -> None:
    sizes = [SLICE_BYTES // 4] * 9 + [2 * SLICE_BYTES] + [10] * 5
    parts = slices(layout("body binary", queue="q"), {"body": [bytes(size) for size in sizes]})
    found = [[len(words[2]) for words in part.commands if isinstance(words[2], bytes)] for part in parts]
    assert [size for part in found for size in part] == sizes
    assert all(sum(part) <= SLICE_BYTES or len(part) == 1 for part in found)


def test_empty_partition_has_no_slice() -> None:
    assert slices(layout("body string", queue="q")) == []
