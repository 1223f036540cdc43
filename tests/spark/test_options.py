"""What can be said with `.option(...)`: every clash has its message, every wrong name its right one, secrets stay."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from pyspark_disque.options import ALWAYS, OPTIONS, BadOption, Option, Secret, Use, parse
from pyspark_disque.schema import IGNORED, METADATA, SINK, SOURCE, source_schema

SAMPLES = {
    "nodes": "one:7711,two", "discover": "false", "password": "hush", "passwordFile": "/run/secret", "timeout": "10s",
    "giveUpAfter": "1m", "queue": "q", "queues": "a,b", "queuePattern": "a.*", "includeMetadata": "TRUE",
    "numPartitions": "4", "maxJobsPerTrigger": "100", "minJobsPerTrigger": "1", "maxTriggerDelay": "15m",
    "ackMode": "FAST", "failOnDataLoss": "false", "states": "active,queued", "consume": "true", "maxJobs": "7",
    "pushDownFilters": "true",
    "mode": "DEDUPLICATED", "window": "2h", "writeId": "w", "delay": "5", "retry": "30s", "ttl": "1d",
    "replicate": "2", "replicateTimeout": "9", "maxlen": "3", "async": "true",
}  # fmt: skip
"""A right text for each option."""
VALUES: dict[str, object] = {
    "nodes": ("one:7711", "two"), "discover": False, "password": "hush", "passwordFile": "/run/secret", "timeout": 10,
    "giveUpAfter": 60, "queue": "q", "queues": ("a", "b"), "queuePattern": "a.*", "includeMetadata": True,
    "numPartitions": 4, "maxJobsPerTrigger": 100, "minJobsPerTrigger": 1, "maxTriggerDelay": 900,
    "ackMode": "fast", "failOnDataLoss": False, "states": ("active", "queued"), "consume": True, "maxJobs": 7,
    "pushDownFilters": True,
    "mode": "deduplicated", "window": 7200, "writeId": "w", "delay": 5, "retry": 30, "ttl": 86400,
    "replicate": 2, "replicateTimeout": 9, "maxlen": 3, "async": True,
}  # fmt: skip
"""And its value."""
NEEDS = {name: {"mode": "deduplicated"} for name in ("writeId", "window")}
"""What some options want beside them."""
READS = ("read", "stream")


def complete(use: Use, **more: str) -> dict[str, str]:
    """The options that a use can not do without, and some more."""
    reads = {} if use not in READS or {"queue", "queues", "queuePattern"} & set(more) else {"queue": "q"}
    return {"nodes": "a", **reads, **more}


def rows_of_the_table() -> list[tuple[Option, Use]]:
    return [(option, use) for option in OPTIONS for use in option.uses]


@pytest.mark.parametrize(("option", "use"), rows_of_the_table(), ids=lambda part: getattr(part, "name", part))
def test_every_option_is_read_in_any_case_where_it_has_a_meaning(option: Option, use: Use) -> None:
    given = {**complete(use, **{option.name.lower(): SAMPLES[option.name]}), **NEEDS.get(option.name, {})}
    if option.name in {"queues", "queuePattern"}:
        given.pop("queue", None)
    assert getattr(parse(given, use), option.field) == VALUES[option.name]


@pytest.mark.parametrize(
    "option", [option for option in OPTIONS if option.uses != ALWAYS], ids=lambda option: option.name
)
def test_an_option_in_the_wrong_place_is_told_its_right_one(option: Option) -> None:
    for use in set(ALWAYS) - set(option.uses):
        with pytest.raises(BadOption, match=rf"the option {option.name} has no meaning for .*, only for .*"):
            parse(complete(use, **{option.name: SAMPLES[option.name]}), use)


@pytest.mark.parametrize(
    ("name", "right"),
    [(cousin, option.name) for option in OPTIONS for cousin in option.cousins]
    + [
        ("node", "nodes"),
        ("quue", "queue"),
        ("maxJobsPerTriger", "maxJobsPerTrigger"),
        ("passwrdFile", "passwordFile"),
    ],
)
def test_a_name_of_another_connector_or_a_slip_is_told_ours(name: str, right: str) -> None:
    with pytest.raises(BadOption, match=f"there is no option {name}: it is called {right} here"):
        parse({**complete("read"), name: "x"}, "read")


def test_a_name_like_none_is_told_all() -> None:
    with pytest.raises(BadOption, match=r"there is no option zzz: the options are nodes, .*, async"):
        parse({**complete("read"), "zzz": "x"}, "read")


def test_a_path_is_told_that_queues_have_none() -> None:
    with pytest.raises(BadOption, match="a queue has no path"):
        parse({**complete("read"), "path": "/data"}, "read")


@pytest.mark.parametrize(
    ("use", "given", "message"),
    [
        ("read", {"nodes": "a"}, "say what to read with one of the options queue, queues and queuePattern"),
        ("read", complete("read", queue="q", queues="a,b"), "the options queue and queues clash"),
        ("stream", complete("stream", queues="a", queuePattern="b"), "the options queues and queuePattern clash"),
        ("write", complete("write", password="x", passwordFile="y"), "the options password and passwordFile clash"),
        (
            "stream",
            complete("stream", minJobsPerTrigger="10", maxJobsPerTrigger="9"),
            r"minJobsPerTrigger \(10\) is more than maxJobsPerTrigger \(9\)",
        ),
        ("streamWrite", complete("streamWrite", window="5m"), "the option window is for the mode deduplicated"),
        ("read", complete("read", consume="true", states="active"), "the options consume and states clash"),
        ("write", complete("write", writeId="w"), "the option writeId is for the mode deduplicated"),
        ("write", complete("write", retry="0", replicate="2"), "for which replicate has to be 1"),
        ("write", complete("write", retry="0", mode="deduplicated"), "retry 0 is at most once"),
        ("write", complete("write", delay="10", ttl="10"), "the delay of 10 s is not shorter than the ttl of 10 s"),
        ("write", {}, "the option nodes is missing"),
    ],
)
def test_options_that_can_not_be_together_are_named(use: Use, given: dict[str, str], message: str) -> None:
    with pytest.raises(BadOption, match=message):
        parse(given, use)


@pytest.mark.parametrize(
    ("use", "name", "text"),
    [
        ("read", "nodes", " , "), ("read", "nodes", "a:b"), ("read", "discover", "yes"), ("read", "timeout", "0"),
        ("read", "timeout", "soon"), ("read", "giveUpAfter", "2w"), ("read", "queue", ""), ("read", "states", "ready"),
        ("read", "queuePattern", "("), ("read", "maxJobs", "-1"), ("read", "numPartitions", "1.5"),
        ("stream", "maxJobsPerTrigger", "1000001"), ("stream", "ackMode", "never"), ("write", "mode", "exactlyOnce"),
        ("write", "window", "2d"), ("write", "ttl", "0"), ("write", "replicate", "0"), ("write", "maxlen", "many"),
    ],
)  # fmt: skip
def test_a_value_that_can_not_be_read_is_shown_with_what_may_be(use: Use, name: str, text: str) -> None:
    with pytest.raises(BadOption, match=f"the option {name} (is|names) ") as wrong:
        parse(complete(use, **{name: text}), use)
    assert str(wrong.value).endswith(f"not {text!r}")


def test_what_spark_adds_to_a_streams_options_is_passed_over() -> None:
    given = {**complete("streamWrite"), "checkpointLocation": "/c", "queryName": "n"}
    assert parse(given, "streamWrite") == parse(complete("streamWrite"), "streamWrite")


# --- secrets ----------------------------------------------------------------------------------------------------------


def test_a_password_shows_itself_to_nobody() -> None:
    options = parse(complete("write", password="open sesame"), "write")
    carried = pickle.loads(pickle.dumps(options))
    for shown in (str(options), repr(options), repr(options.password), f"{options.password}", repr(carried)):
        assert "sesame" not in shown
    assert carried.reveal_password() == "open sesame"
    assert isinstance(carried.password, Secret)


def test_a_password_is_in_no_message() -> None:
    for more in ({"passwordFile": "/p"}, {"zzz": "1"}, {"maxlen": "x"}):
        with pytest.raises(BadOption) as wrong:
            parse(complete("write", password="open sesame", **more), "write")
        assert "sesame" not in str(wrong.value)


def test_a_password_comes_from_a_file_when_it_is_needed(tmp_path: Path) -> None:
    file = tmp_path / "password"
    options = parse(complete("write", passwordFile=str(file)), "write")
    with pytest.raises(BadOption, match="passwordFile names a file that can not be read"):
        options.reveal_password()
    file.write_text("öffne dich\n")
    assert options.reveal_password() == "öffne dich"


# --- columns ----------------------------------------------------------------------------------------------------------


def test_what_is_read_can_be_written() -> None:
    columns = [column.split()[0] for column in source_schema(metadata=True, state=True).split(", ")]
    assert set(columns) <= set(SINK) | IGNORED


def test_the_source_has_the_columns_that_were_asked_for() -> None:
    assert source_schema(metadata=False, state=True) == SOURCE
    assert source_schema(metadata=True, state=False) == f"{SOURCE}, {METADATA}"
