"""The options of the connector: parsing, conflicts, the messages for wrong names, and secrets."""

from __future__ import annotations

import pickle
import ssl
from pathlib import Path

import pytest

from disqued.testing.certificates import Authority
from pyspark_disque.options import ALWAYS, OPTIONS, Option, Use, parse
from pyspark_disque.optionvalues import BadOption, Secret
from pyspark_disque.schema import ATTRIBUTES, IGNORED, METADATA, SINK, SOURCE, source_schema

SAMPLES = {
    "nodes": "one:7711,two", "discover": "false", "password": "hush", "passwordFile": "/run/secret", "timeout": "10s",
    "user": "mail", "tls": "True", "tlsCaFile": "/run/ca.crt", "tlsCertFile": "/run/tls.crt",
    "tlsKeyFile": "/run/tls.key",
    "giveUpAfter": "1m", "queue": "q", "queues": "a,b", "queuePattern": "a.*", "includeMetadata": "TRUE",
    "numPartitions": "4", "maxJobsPerTrigger": "100", "minJobsPerTrigger": "1", "maxTriggerDelay": "15m",
    "ackMode": "FAST", "failOnDataLoss": "false", "states": "active,queued", "consume": "true", "maxJobs": "7",
    "pushDownFilters": "true",
    "mode": "DEDUPLICATED", "window": "2h", "writeId": "w", "delay": "5", "retry": "30s", "ttl": "1d",
    "replicate": "2", "replicateTimeout": "9", "maxlen": "3", "async": "true", "includeAttributes": "true",
    "priority": "-5", "retain": "2h", "otherwise": "Drop", "wait": "10m",
}  # fmt: skip
"""A valid text for each option."""
VALUES: dict[str, object] = {
    "nodes": ("one:7711", "two"), "discover": False, "password": "hush", "passwordFile": "/run/secret", "timeout": 10,
    "user": "mail", "tls": True, "tlsCaFile": "/run/ca.crt", "tlsCertFile": "/run/tls.crt",
    "tlsKeyFile": "/run/tls.key",
    "giveUpAfter": 60, "queue": "q", "queues": ("a", "b"), "queuePattern": "a.*", "includeMetadata": True,
    "numPartitions": 4, "maxJobsPerTrigger": 100, "minJobsPerTrigger": 1, "maxTriggerDelay": 900,
    "ackMode": "fast", "failOnDataLoss": False, "states": ("active", "queued"), "consume": True, "maxJobs": 7,
    "pushDownFilters": True,
    "mode": "deduplicated", "window": 7200, "writeId": "w", "delay": 5, "retry": 30, "ttl": 86400,
    "replicate": 2, "replicateTimeout": 9, "maxlen": 3, "async": True, "includeAttributes": True, "priority": -5,
    "retain": 7200, "otherwise": "drop", "wait": 600,
}  # fmt: skip
"""The value of each sample."""
NEEDS = {
    **{name: {"mode": "deduplicated"} for name in ("writeId", "window")},
    "user": {"passwordFile": "/run/secret"},
    **{name: {"tls": "true"} for name in ("tlsCaFile", "tlsCertFile")},
    "tlsKeyFile": {"tls": "true", "tlsCertFile": "/run/tls.crt"},
}
"""The other options that an option requires."""
READS = ("read", "stream")


def complete(use: Use, **more: str) -> dict[str, str]:
    """Return the required options of a use, and some more."""
    reads = {} if use not in READS or {"queue", "queues", "queuePattern"} & set(more) else {"queue": "q"}
    return {"nodes": "a", **reads, **more}


def rows_of_the_table() -> list[tuple[Option, Use]]:
    return [(option, use) for option in OPTIONS for use in option.uses]


@pytest.mark.parametrize(("option", "use"), rows_of_the_table(), ids=lambda part: getattr(part, "name", part))
def test_option_is_parsed_in_any_case_where_it_applies(option: Option, use: Use) -> None:
    given = {**complete(use, **{option.name.lower(): SAMPLES[option.name]}), **NEEDS.get(option.name, {})}
    if option.name in {"queues", "queuePattern"}:
        given.pop("queue", None)
    assert getattr(parse(given, use), option.field) == VALUES[option.name]


@pytest.mark.parametrize(
    "option", [option for option in OPTIONS if option.uses != ALWAYS], ids=lambda option: option.name
)
def test_option_that_does_not_apply_is_rejected_with_where_it_does(option: Option) -> None:
    for use in set(ALWAYS) - set(option.uses):
        with pytest.raises(BadOption, match=rf"the option {option.name} does not apply to .*, only to .*"):
            parse(complete(use, **{option.name: SAMPLES[option.name]}), use)


@pytest.mark.parametrize(
    ("name", "right"),
    [(foreign_name, option.name) for option in OPTIONS for foreign_name in option.foreign_names]
    + [
        ("node", "nodes"),
        ("quue", "queue"),
        ("maxJobsPerTriger", "maxJobsPerTrigger"),
        ("passwrdFile", "passwordFile"),
    ],
)
def test_foreign_or_misspelled_name_is_rejected_with_the_right_name(name: str, right: str) -> None:
    with pytest.raises(BadOption, match=f"unknown option {name}; use {right}$"):
        parse({**complete("read"), name: "x"}, "read")


def test_unknown_name_is_rejected_with_all_names() -> None:
    with pytest.raises(BadOption, match=r"unknown option zzz; the options are nodes, .*, wait"):
        parse({**complete("read"), "zzz": "x"}, "read")


def test_path_is_rejected_because_queues_have_none() -> None:
    with pytest.raises(BadOption, match="a queue has no path"):
        parse({**complete("read"), "path": "/data"}, "read")


@pytest.mark.parametrize(
    ("use", "given", "message"),
    [
        ("read", {"nodes": "a"}, "no queue to read; set one of the options queue, queues and queuePattern"),
        ("read", complete("read", queue="q", queues="a,b"), "the options queue and queues conflict"),
        ("stream", complete("stream", queues="a", queuePattern="b"), "the options queues and queuePattern conflict"),
        ("write", complete("write", password="x", passwordFile="y"), "the options password and passwordFile conflict"),
        (
            "stream",
            complete("stream", minJobsPerTrigger="10", maxJobsPerTrigger="9"),
            r"minJobsPerTrigger \(10\) must not exceed maxJobsPerTrigger \(9\)",
        ),
        ("streamWrite", complete("streamWrite", window="5m"), "the option window requires the mode deduplicated"),
        ("read", complete("read", consume="true", states="active"), "the options consume and states conflict"),
        ("write", complete("write", writeId="w"), "the option writeId requires the mode deduplicated"),
        ("write", complete("write", retry="0", replicate="2"), "requires replicate 1, not 2"),
        ("write", complete("write", retry="0", mode="deduplicated"), "retry 0 means at most once and conflicts"),
        ("write", complete("write", delay="10", ttl="10"), "the delay of 10 s must be shorter than the ttl of 10 s"),
        ("write", {}, "the option nodes is missing"),
        ("write", complete("write", user="mail"), "the user mail needs a password; set the option passwordFile"),
        ("write", complete("write", nodes="disques://mail@a"), "the user mail needs a password"),
        ("read", complete("read", tlsCaFile="c"), "the option tlsCaFile requires TLS"),
        ("read", complete("read", tls="false", tlsCertFile="c"), "the option tlsCertFile requires TLS"),
        ("read", complete("read", tls="true", tlsKeyFile="k"), "the option tlsKeyFile requires the option tlsCertFile"),
        ("stream", complete("stream", nodes="disques://a", tls="false"), "the option tls and the URL .* conflict"),
        (
            "write",
            complete("write", nodes="disques://mail@a", user="ann", password="p"),
            "the option user and the URL in the option nodes conflict",
        ),
    ],
)
def test_conflicting_options_are_rejected_by_name(use: Use, given: dict[str, str], message: str) -> None:
    with pytest.raises(BadOption, match=message):
        parse(given, use)


@pytest.mark.parametrize(
    ("use", "name", "text"),
    [
        ("read", "nodes", " , "), ("read", "nodes", "a:b"), ("read", "nodes", "disques://a,b"),
        ("read", "nodes", "disques://a?cafile=/ca"), ("read", "nodes", "http://a"), ("read", "tls", "yes"),
        ("read", "tlsCaFile", ""), ("write", "user", ""),
        ("read", "discover", "yes"), ("read", "timeout", "0"),
        ("read", "timeout", "soon"), ("read", "giveUpAfter", "2w"), ("read", "queue", ""), ("read", "states", "ready"),
        ("read", "queuePattern", "("), ("read", "maxJobs", "-1"), ("read", "numPartitions", "1.5"),
        ("stream", "maxJobsPerTrigger", "1000001"), ("stream", "ackMode", "never"), ("write", "mode", "exactlyOnce"),
        ("write", "window", "2d"), ("write", "ttl", "0"), ("write", "replicate", "0"), ("write", "maxlen", "many"),
        ("write", "retain", "31d"), ("write", "otherwise", "wait"), ("results", "wait", "forever"),
        ("write", "priority", "high"), ("write", "priority", "2147483648"), ("write", "priority", "1.5"),
    ],
)  # fmt: skip
def test_invalid_value_is_shown_with_the_expected_form(use: Use, name: str, text: str) -> None:
    with pytest.raises(BadOption, match=f"the option {name} must ") as wrong:
        parse(complete(use, **{name: text}), use)
    assert str(wrong.value).endswith(f"not {text!r}")


def test_options_of_spark_itself_are_ignored() -> None:
    given = {**complete("streamWrite"), "checkpointLocation": "/c", "queryName": "n"}
    assert parse(given, "streamWrite") == parse(complete("streamWrite"), "streamWrite")


def test_urls_set_tls_and_the_user() -> None:
    options = parse(complete("read", nodes="disques://mail@a:1, disques://mail@[::1]", passwordFile="/p"), "read")
    assert (options.nodes, options.tls, options.user) == (("a:1", "[::1]"), True, "mail")
    assert parse(complete("read", nodes="disque://a", tls="true"), "read").tls


def test_settings_of_tls_are_made_from_the_files(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.issue("client")
    files = {"tlsCaFile": authority.certificate, "tlsCertFile": certificate, "tlsKeyFile": key}
    options = parse(complete("read", tls="true", **{name: str(path) for name, path in files.items()}), "read")
    settings = pickle.loads(pickle.dumps(options)).tls_settings()
    assert (settings.verify_mode, settings.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert [found["subject"] for found in settings.get_ca_certs()] == [((("commonName", "ca"),),)]
    key.unlink()
    with pytest.raises(BadOption, match=rf"cannot use the files of TLS \(.*tlsKeyFile {key}\): .*No such file"):
        options.tls_settings()
    assert parse(complete("read"), "read").tls_settings() is None


# --- secrets ----------------------------------------------------------------------------------------------------------


def test_password_is_not_in_the_text_of_options() -> None:
    options = parse(complete("write", password="open sesame"), "write")
    carried = pickle.loads(pickle.dumps(options))
    for shown in (str(options), repr(options), repr(options.password), f"{options.password}", repr(carried)):
        assert "sesame" not in shown
    assert carried.reveal_password() == "open sesame"
    assert isinstance(carried.password, Secret)


def test_password_is_not_in_error_messages() -> None:
    for more in ({"passwordFile": "/p"}, {"zzz": "1"}, {"maxlen": "x"}):
        with pytest.raises(BadOption) as wrong:
            parse(complete("write", password="open sesame", **more), "write")
        assert "sesame" not in str(wrong.value)


@pytest.mark.parametrize(
    "nodes", ["disques://:sesame@a", "disque://u:ses@me@a,b", "u:sesame@a:1", "disques://u:sesame@"]
)
def test_password_in_nodes_is_refused_and_not_shown(nodes: str) -> None:
    with pytest.raises(BadOption, match="the option nodes must ") as wrong:
        parse(complete("write", nodes=nodes), "write")
    assert "ses" not in str(wrong.value)


def test_password_file_is_read_when_the_password_is_needed(tmp_path: Path) -> None:
    file = tmp_path / "password"
    options = parse(complete("write", passwordFile=str(file)), "write")
    with pytest.raises(BadOption, match="cannot read the file of the option passwordFile"):
        options.reveal_password()
    file.write_text("öffne dich\n")
    assert options.reveal_password() == "öffne dich"


# --- columns ----------------------------------------------------------------------------------------------------------


def test_columns_of_the_source_are_accepted_by_the_sink() -> None:
    columns = [column.split()[0] for column in source_schema(metadata=True, state=True, attributes=True).split(", ")]
    assert set(columns) <= set(SINK) | IGNORED


def test_source_has_the_requested_columns() -> None:
    assert source_schema(metadata=False, state=True) == SOURCE
    assert source_schema(metadata=True, state=False) == f"{SOURCE}, {METADATA}"
    assert source_schema(metadata=False, state=False, attributes=True) == f"{SOURCE}, {ATTRIBUTES}"
