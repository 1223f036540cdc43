"""The views: tables on terminals, lines in pipes, JSON."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from cli.running import Disque
from disqued.cli.exits import Exit
from disqued.cli.units import human_bytes, human_duration, human_rate
from disqued.cli.views.columns import Column, body_text, plain
from disqued.cli.views.load import Sample, take_sample
from disqued.cli.views.terminal import rich_table
from disqued.client import Client
from disqued.testing.processes import ServerProcess

QUEUE_FIELDS = [
    "queue",
    "length",
    "jobs_in",
    "jobs_out",
    "blocked_clients",
    "pause",
    "age_s",
    "idle_s",
    "import_rate",
    "import_from",
    "length_by_priority",
    "leased",
    "delayed",
    "held",
    "dead",
    "oldest_ms",
    "settings",
    "limited",
]
JOB_FIELDS = [
    "id",
    "queue",
    "state",
    "age_s",
    "ttl_s",
    "retry_s",
    "delay_s",
    "next_requeue_within_ms",
    "nacks",
    "additional_deliveries",
    "replicate",
    "nodes_delivered",
    "nodes_confirmed",
    "priority",
    "body_bytes",
    "body",
]
LOAD_FIELDS = [
    "queue",
    "length",
    "in_per_second",
    "out_per_second",
    "blocked_clients",
    "oldest_s",
    "idle_s",
    "pause",
    "limited",
]
FIGURES = [
    "node",
    "version",
    "uptime_s",
    "registered_jobs",
    "registered_queues",
    "connected_clients",
    "blocked_clients",
    "used_memory_bytes",
    "commands_per_second",
    "in_per_second",
    "out_per_second",
]
PHASE_FIELDS = ["phase", "requests", "seconds", "per_second", "p50_ms", "p95_ms", "p99_ms", "max_ms"]


def rows(text: str) -> list[dict[str, str]]:
    names, *lines = (line.split("\t") for line in text.splitlines())
    return [dict(zip(names, line, strict=True)) for line in lines]


def add(disque: Disque, queue: str, *bodies: str) -> list[str]:
    return [disque.ok("addjob", queue, body, "0").strip() for body in bodies]


def test_queues_in_a_pipe_as_json_and_on_a_terminal(disque: Disque) -> None:
    add(disque, "q-short", "1")
    add(disque, "q-long", "1", "2")
    disque.ok("pause", "q-short", "in")
    found = rows(disque.ok("queues", "q-*"))
    assert [(row["queue"], row["length"], row["pause"]) for row in found] == [
        ("q-long", "2", "none"),
        ("q-short", "1", "in"),
    ]
    assert list(found[0]) == QUEUE_FIELDS
    as_json: list[dict[str, Any]] = json.loads(disque.ok("queues", "q-*", "--sort", "name", "--json"))
    assert [list(row) for row in as_json] == [QUEUE_FIELDS] * 2
    assert as_json[1] | {"age_s": 0, "idle_s": 0, "oldest_ms": 0} == {
        "queue": "q-short",
        "length": 1,
        "jobs_in": 1,
        "jobs_out": 0,
        "blocked_clients": 0,
        "pause": "in",
        "age_s": 0,
        "idle_s": 0,
        "import_rate": 0,
        "import_from": [],
        "length_by_priority": [],
        "leased": 0,
        "delayed": 0,
        "held": 0,
        "dead": 0,
        "oldest_ms": 0,
        "settings": [],
        "limited": "no",
    }
    with disque.in_terminal("queues", "q-*") as terminal:
        assert terminal.wait_for_end() == Exit.OK
        assert "\x1b[" in terminal.raw
        assert next(line.split() for line in terminal.text.splitlines() if "q-long" in line)[:2] == ["q-long", "2"]


def test_no_color_disables_colours(disque: Disque) -> None:
    add(disque, "grey", "body")
    with disque.in_terminal("queues", "grey", NO_COLOR="1") as terminal:
        assert terminal.wait_for_end() == Exit.OK
        assert "grey" in terminal.text
        assert "\x1b[3" not in terminal.raw


def test_empty_result_is_a_sentence_on_a_terminal_and_an_empty_table_in_a_pipe(disque: Disque) -> None:
    assert rows(disque.ok("queues", "no-such-*")) == []
    assert json.loads(disque.ok("jobs", "--queue", "no-such", "--json")) == []
    with disque.in_terminal("peek", "no-such") as terminal:
        terminal.wait_for("No jobs in queue 'no-such'.")


def test_jobs_are_filtered_by_queue_and_state(disque: Disque) -> None:
    ids = add(disque, "j", "one", "two", "three")
    add(disque, "other", "four")
    (fetched,) = json.loads(disque.ok("--json", "getjob", "from", "j"))
    queued = rows(disque.ok("jobs", "--queue", "j", "--state", "queued"))
    assert {row["id"] for row in queued} == set(ids) - {fetched[1]}
    everything = json.loads(disque.ok("jobs", "--queue", "j", "--json"))
    assert {row["id"]: row["state"] for row in everything}[fetched[1]] == "active"
    assert list(everything[0]) == list(queued[0]) == JOB_FIELDS
    assert sorted(row["body"] for row in everything) == ["one", "three", "two"]


def test_limit_of_jobs_is_reported(disque: Disque) -> None:
    add(disque, "many", *"abc")
    done = disque("jobs", "--queue", "many", "--limit", "2")
    assert len(rows(done.stdout.decode())) == 2
    assert done.stderr == b"More than 2 jobs found; use --limit 0 to list all.\n"
    assert len(rows(disque.ok("jobs", "--queue", "many", "--limit", "3"))) == 3
    assert len(rows(disque.ok("jobs", "--queue", "many", "--limit", "0"))) == 3


def test_jobs_fit_the_terminal_with_complete_ids(disque: Disque) -> None:
    (job_id,) = add(disque, "a-queue-with-a-name-that-is-much-too-long-for-a-column", "body")
    with disque.in_terminal("jobs", "--queue", "a-queue-with-a-name-that-is-much-too-long-for-a-column") as terminal:
        assert terminal.wait_for_end() == Exit.OK
        assert job_id in terminal.text
        assert max(map(len, terminal.text.splitlines())) <= 100


def test_settings_lists_what_is_set_and_what_holds_for_a_queue(disque: Disque) -> None:
    disque.ok("qconf", "mail:*", "set", "retry", "30", "ttl", "60")
    disque.ok("qconf", "mail:eu", "set", "retry", "10")
    listed = [(row["name"], row["setting"], row["value"]) for row in rows(disque.ok("settings", "mail:*"))]
    assert listed == [("mail:*", "retry", "30"), ("mail:*", "ttl", "60"), ("mail:eu", "retry", "10")]
    of_queue = {
        row["setting"]: (row["value"], row["from"]) for row in rows(disque.ok("settings", "--queue", "mail:eu"))
    }
    assert (of_queue["retry"], of_queue["ttl"]) == (("10", "mail:eu"), ("60", "mail:*"))
    assert of_queue["dead"] == ("mail:eu.dead", "")
    with disque.in_terminal("settings", "none-of-them") as terminal:
        assert terminal.wait_for_end() == Exit.OK
        assert "Nothing is set for 'none-of-them'." in terminal.text
    disque.ok("qconf", "mail:*", "unset", "*")
    disque.ok("qconf", "mail:eu", "unset", "*")


def test_schedules_are_listed_with_their_runs(disque: Disque) -> None:
    disque.ok("schedule", "daily", "set", "0 3 * * *", "mail", "body", "tz", "Europe/Berlin", "ttl", "60")
    disque.ok("schedule", "leap", "set", "0 0 29 2 *", "mail", "body")
    disque.ok("schedule", "leap", "pause")
    leap, daily = sorted(rows(disque.ok("schedules", "*")), key=lambda row: row["state"], reverse=True)
    assert (daily["name"], daily["when"], daily["zone"]) == ("daily", "0 3 * * *", "Europe/Berlin")
    assert (daily["options"], daily["missed"], daily["strict"]) == ("TTL 60", "skip", "yes")
    assert (leap["state"], leap["next_ms"], leap["last_ms"]) == ("paused", "0", "0")
    assert rows(disque.ok("schedules", "daily")) == [daily]
    with disque.in_terminal("schedules", "none-of-them*") as terminal:
        assert terminal.wait_for_end() == Exit.OK
        assert "No schedule matches 'none-of-them*'." in terminal.text
    disque.ok("schedule", "daily", "del")
    disque.ok("schedule", "leap", "del")


def test_count_shows_the_jobs_of_all_nodes_by_state(disque: Disque) -> None:
    add(disque, "counted", "one", "two")
    disque.ok("addjob", "counted", "later", "0", "delay", "60")
    disque.ok("getjob", "from", "counted")
    (row,) = rows(disque.ok("count", "counted"))
    assert (row["queued"], row["leased"], row["delayed"], row["dead"]) == ("1", "1", "1", "0")
    assert (row["nodes_answered"], row["nodes_known"]) == ("1", "1")


def test_wait_shows_how_jobs_ended(disque: Disque) -> None:
    done, gone = (disque.ok("addjob", "waited", body, "0", "retain", "60").strip() for body in ("one", "two"))
    disque.ok("ackjob", done)
    disque.ok("deljob", gone)
    ended = {row["id"]: (row["outcome"], row["result"]) for row in rows(disque.ok("wait", done, gone))}
    assert ended == {done: ("done", ""), gone: ("deleted", "")}
    waiting = disque.ok("addjob", "waited", "three", "0").strip()
    late = disque("wait", waiting, "--any", "--timeout", "50")
    assert late.returncode == Exit.REFUSED
    assert late.stderr == b"Not after 50 ms: the jobs have not ended, or no node knows them.\n"


def test_log_shows_what_workers_wrote_also_after_the_end_of_the_job(disque: Disque) -> None:
    job = disque.ok("addjob", "logged", "body", "0", "retain", "60").strip()
    with disque.in_terminal("log", job) as terminal:
        assert terminal.wait_for_end() == Exit.OK
        assert "The job has no progress log." in terminal.text
    for entry in ("begun", "half done"):
        disque.ok("logjob", job, entry)
    disque.ok("ackjob", job)
    written = [(row["claim"], row["seq"], row["entry"]) for row in rows(disque.ok("log", job))]
    assert written == [("0", "0", "begun"), ("0", "1", "half done")]
    with disque.in_terminal("log", job) as terminal:
        assert terminal.wait_for_end() == Exit.OK
        assert "half done" in terminal.text
    unknown = disque("log", "D-0011aabb-aaaaaaaaaaaaaaaaaaaaaaaa-05a1")
    assert unknown.returncode == Exit.REFUSED
    assert unknown.stderr == b"No node that answers knows the job.\n"


def test_purge_deletes_jobs_and_asks_for_the_name_on_a_terminal(disque: Disque) -> None:
    add(disque, "old", "one", "two")
    with disque.in_terminal("purge", "old") as terminal:
        terminal.wait_for("Type its name to confirm: ")
        terminal.type("all\n")
        assert terminal.wait_for_end() == Exit.USAGE
    assert disque.ok("qlen", "old") == "2\n"
    with disque.in_terminal("purge", "old") as terminal:
        terminal.wait_for("Type its name to confirm: ")
        terminal.type("old\n")
        assert terminal.wait_for_end() == Exit.OK
        assert "2 jobs deleted from queue 'old'." in terminal.text
    add(disque, "old", "three")
    assert disque.ok("purge", "old", "--state", "delayed") == "0 jobs deleted from queue 'old'.\n"
    assert disque.ok("purge", "old") == "1 jobs deleted from queue 'old'.\n"


def test_a_delayed_job_is_run_now_and_another_one_cancelled(disque: Disque) -> None:
    first, second = (disque.ok("addjob", "timed", body, "0", "delay", "60").strip() for body in ("one", "two"))
    assert disque.ok("run-now", first) == "1\n"
    assert disque.ok("cancel", second) == "1\n"
    assert disque.ok("qlen", "timed") == "1\n"
    assert rows(disque.ok("jobs", "--queue", "timed", "--state", "delayed")) == []


def test_peek_shows_bodies_without_fetching(disque: Disque) -> None:
    disque.ok("addjob", "p", "text\twith a tab and \\", "0")
    disque.ok("-x", "debug", "sleep", stdin=b"0")
    disque.ok("addjob", "p", "second", "0")
    assert [row["body"] for row in rows(disque.ok("peek", "p"))] == ["text\\twith a tab and \\\\", "second"]
    (newest,) = json.loads(disque.ok("peek", "p", "-n", "-1", "--json"))
    assert (newest["queue"], newest["body"], newest["body_bytes"]) == ("p", "second", 6)
    assert disque.ok("qlen", "p") == "2\n"


def test_peek_truncates_long_bodies_on_a_terminal_only(disque: Disque) -> None:
    add(disque, "long", "x" * 1000 + "end")
    assert disque.ok("peek", "long").endswith("end\n")
    with disque.in_terminal("peek", "long") as terminal:
        assert terminal.wait_for_end() == Exit.OK
        assert "x…" in terminal.text
        assert "end" not in terminal.text
    with disque.in_terminal("peek", "long", "--full") as terminal:
        terminal.wait_for("end")


def test_top_once_prints_the_node_and_its_queues(disque: Disque) -> None:
    add(disque, "t", "1", "2")
    figures, table = disque.ok("top", "--interval", "0.1").split("\n\n")
    assert [line.split("\t")[0] for line in figures.splitlines()] == FIGURES
    (row,) = [row for row in rows(table) if row["queue"] == "t"]
    assert list(row) == LOAD_FIELDS
    assert row["length"] == "2"
    assert float(row["oldest_s"]) > 0.0
    found = json.loads(disque.ok("top", "--interval", "0.1", "--json"))
    assert list(found) == [*FIGURES, "queues"]
    assert {row["queue"]: row["length"] for row in found["queues"]}["t"] == 2


def test_top_runs_on_a_terminal_until_q(disque: Disque) -> None:
    add(disque, "live", "body")
    with disque.in_terminal("top", "--interval", "0.2") as terminal:
        terminal.wait_for("live")
        terminal.type("l")
        terminal.wait_for("live")
        add(disque, "newcomer", "body")
        terminal.wait_for("newcomer")
        terminal.type("q")
        assert terminal.wait_for_end() == Exit.OK


def test_top_leaves_room_for_its_keys(tmp_path: Path) -> None:
    with ServerProcess(tmp_path) as node, Client([f"127.0.0.1:{node.port}"], discover=False) as client:
        for number in range(40):
            client.add(f"queue-{number}", "body")
        with Disque(node.port).in_terminal("top") as terminal:
            terminal.wait_for("more queues do not fit")
            terminal.wait_for("q quit")
            terminal.type("q")
            assert terminal.wait_for_end() == Exit.OK


def test_top_ends_with_ctrl_c(disque: Disque) -> None:
    with disque.in_terminal("top") as terminal:
        terminal.wait_for("q quit")
        terminal.type("\x03")
        assert terminal.wait_for_end() == Exit.OK


def test_rates_are_differences_of_samples(disque: Disque) -> None:
    with Client([f"127.0.0.1:{disque.port}"], discover=False) as client:
        client.add("old", "body")
        before = take_sample(client, "node")
        assert {load.in_per_s for load in before.loads} == {0.0}
        client.add("old", "body")
        client.get("old")
        client.add("new", "body")
        after = take_sample(client, "node", Sample("node", before.taken_s - 9.0, before.info, before.loads))
        elapsed_s = after.taken_s - before.taken_s + 9.0
    rates = {load.stats.name: (load.in_per_s, load.out_per_s) for load in after.loads}
    assert rates["old"] == pytest.approx((1 / elapsed_s, 1 / elapsed_s), abs=0.001)
    assert rates["new"] == pytest.approx((1 / elapsed_s, 0.0), abs=0.001)
    assert after.in_per_s == pytest.approx(2 / elapsed_s, abs=0.002)


def test_bench_measures_three_phases_and_deletes_its_jobs(disque: Disque) -> None:
    phases = json.loads(disque.ok("bench", "-n", "300", "-c", "3", "-P", "8", "--json"))
    assert [(phase["phase"], phase["requests"]) for phase in phases] == [("add", 300), ("get", 300), ("ack", 300)]
    assert [list(phase) for phase in phases] == [PHASE_FIELDS] * 3
    assert all(0 < phase["p50_ms"] <= phase["p95_ms"] <= phase["p99_ms"] <= phase["max_ms"] for phase in phases)
    assert [row for row in rows(disque.ok("jobs")) if row["queue"].startswith("disque-bench")] == []


def test_bench_refuses_a_queue_in_use(disque: Disque) -> None:
    add(disque, "in-use", "body")
    disque.ok("getjob", "from", "in-use")
    done = disque("bench", "--queue", "in-use")
    assert done.returncode == Exit.USAGE
    assert done.stderr == b"disque bench: queue 'in-use' has jobs; choose a queue that is not in use\n"


def test_bench_reports_the_error_of_the_server(disque: Disque) -> None:
    disque.ok("pause", "closed", "in")
    done = disque("bench", "--queue", "closed", "-n", "10")
    assert (done.returncode, done.stderr) == (Exit.REFUSED, b"PAUSED Queue paused in input, try later\n")


def test_interrupted_bench_deletes_its_jobs(disque: Disque) -> None:
    with disque.started("bench", "-n", "10000000", "--queue", "interrupted") as process:
        while disque.ok("qlen", "interrupted") == "0\n":
            pass  # until it adds jobs
        process.send_signal(signal.SIGINT)
        assert process.wait() == Exit.INTERRUPTED
    assert rows(disque.ok("jobs", "--queue", "interrupted")) == []


def test_view_ends_when_its_node_stops(tmp_path_factory: pytest.TempPathFactory) -> None:
    with ServerProcess(tmp_path_factory.mktemp("leaving")) as node, Disque(node.port).in_terminal("top") as terminal:
        terminal.wait_for("q quit")
        Disque(node.port).ok("shutdown")
        assert terminal.wait_for_end() == Exit.CONNECTION


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (3, "3"),
        (0.25, "0.250"),
        (("a", "b"), "a,b"),
        ("a\tb\\\n\x1b\u2028\udcff", r"a\tb\\\n\x1b\u2028\xff"),
    ],
)
def test_value_is_formatted_on_one_line(value: str | float | tuple[str, ...] | None, text: str) -> None:
    assert plain(value) == text


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"0123456789", "0123456789"),
        (b"0123456789a", "012345678…"),
        (b"\xff" * 3, r"\xff\xff…"),
        ("grün".encode(), "grün"),
    ],
)
def test_body_is_truncated(body: bytes, text: str) -> None:
    assert body_text(body, 10) == text


def test_numbers_are_human_readable() -> None:
    assert [human_bytes(n) for n in (0, 1023, 1024, 1536 * 1024, 1 << 60)] == [
        "0B",
        "1023B",
        "1.00K",
        "1.50M",
        "1024.00P",
    ]
    durations_s = (0, 0.25, 9.9, 59, 60, 61, 3600, 90061)
    assert [human_duration(s) for s in durations_s] == ["0s", "0.2s", "9.9s", "59s", "1m", "1m1s", "1h", "1d1h"]
    assert [human_rate(r) for r in (0, 0.04, 9.96, 10, 9999, 12345)] == ["0", "0.0", "10.0", "10", "9999", "12.3k"]


@pytest.mark.parametrize(
    "columns", [FIGURES, LOAD_FIELDS, QUEUE_FIELDS, JOB_FIELDS, PHASE_FIELDS], ids=lambda names: names[1]
)
def test_guide_lists_the_columns_in_order(columns: list[str]) -> None:
    guide = (Path(__file__).parents[2] / "docs" / "howto" / "command-line.md").read_text()
    assert ", ".join(f"`{name}`" for name in columns) in " ".join(guide.split())


@pytest.mark.parametrize(("remarks", "titles"), [(["", ""], ["POD"]), (["", "it waits"], ["POD", "REMARKS"])])
def test_sparse_column_is_shown_when_it_has_values(remarks: list[str], titles: list[str]) -> None:
    columns: tuple[Column[str], ...] = (
        Column("pod", lambda _row: "jobs-0", "POD"),
        Column("remarks", lambda row: row, "REMARKS", folds=True, sparse=True),
    )
    assert [column.header for column in rich_table(columns, remarks, 100).columns] == titles
