"""The words of each call, and which calls may be repeated."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import pytest

from disqued.client import NewJob, adding, calls, failing, fates, ordered, repairs, schedules
from disqued.client.calls import Call

ID = "D-01234567-abcdefghijklmnopqrstuvwx-05a1"

WORDS: dict[str, tuple[Call[Any], tuple[object, ...]]] = {
    "add": (adding.add("q", b"x"), ("ADDJOB", "q", b"x", 5000)),
    "add with all options": (
        adding.add("q", "x", timeout_ms=0, replicate=2, delay_s=3, retry_s=0, ttl_s=60, maxlen=9, asynchronous=True),
        ("ADDJOB", "q", "x", 0, "REPLICATE", 2, "DELAY", 3, "RETRY", 0, "TTL", 60, "MAXLEN", 9, "ASYNC"),
    ),
    "add before others": (
        adding.add("q", "x", priority=-1, meta=b"trace 7", retain_s=60),
        ("ADDJOB", "q", "x", 5000, "PRIORITY", -1, "META", b"trace 7", "RETAIN", 60),
    ),
    "add once": (
        adding.add("q", "x", key=b"\0k", window_s=60),
        ("ADDJOB", "q", "x", 5000, "KEY", b"\0k", "WINDOW", 60),
    ),
    "add until done": (
        adding.add("q", "x", key="k", until="done"),
        ("ADDJOB", "q", "x", 5000, "KEY", "k", "UNTIL", "done"),
    ),
    "add and count the copies": (
        adding.add_with_copies("q", "x", sync=2, job_id="i"),
        ("ADDJOB", "q", "x", 5000, "ID", "i", "SYNC", 2, "WITHCOPIES"),
    ),
    "add after others": (
        adding.add("q", "x", after=[ID, ID], otherwise="run"),
        ("ADDJOB", "q", "x", 5000, "AFTER", ID, "AFTER", ID, "ELSE", "run"),
    ),
    "new_id": (adding.new_id(), ("NEWID",)),
    "new_id of a job with these options": (adding.new_id(ttl_s=60, retry_s=0), ("NEWID", "TTL", 60, "RETRY", 0)),
    "add when some copies are confirmed": (
        adding.add("q", "x", replicate=3, sync=2),
        ("ADDJOB", "q", "x", 5000, "REPLICATE", 3, "SYNC", 2),
    ),
    "add to several queues": (
        adding.add_to(["a", "b"], "x", timeout_ms=7, replicate=2, key="k", asynchronous=True),
        ("ADDTO", 2, "a", "b", "x", 7, "REPLICATE", 2, "KEY", "k", "ASYNC"),
    ),
    "get of one queue": (calls.get("mail"), ("GETJOB", "TIMEOUT", 0, "COUNT", 1, "FROM", "mail")),
    "get of several queues": (
        calls.get(["a", "b"], count=3, nohang=True, with_counters=True, timeout_ms=7),
        ("GETJOB", "NOHANG", "WITHCOUNTERS", "TIMEOUT", 7, "COUNT", 3, "FROM", "a", "b"),
    ),
    "get of patterns": (
        calls.get_matching(["FROM", "m*"], count=3, nohang=True, with_requeue=True, with_meta=True, timeout_ms=7),
        ("GETJOB", "NOHANG", "WITHREQUEUE", "WITHMETA", "TIMEOUT", 7, "COUNT", 3, "FROMPATTERN", "FROM", "m*"),
    ),
    "get with all options": (
        calls.get("q", with_counters=True, with_requeue=True, with_meta=True),
        ("GETJOB", "WITHCOUNTERS", "WITHREQUEUE", "WITHMETA", "TIMEOUT", 0, "COUNT", 1, "FROM", "q"),
    ),
    "ack": (calls.ack(ID, ID), ("ACKJOB", ID, ID)),
    "fast_ack": (calls.fast_ack(ID), ("FASTACK", ID)),
    "nack": (failing.nack(ID), ("NACK", ID)),
    "nack for later": (
        failing.nack(ID, ID, delay_ms=1500, reason="timeout: DELAY", uncounted=True),
        ("NACK", ID, ID, "PDELAY", 1500, "REASON", b"timeout: DELAY", "UNCOUNTED"),
    ),
    "nack of a job that is rejected": (
        failing.nack(ID, reason="bad", dead=True),
        ("NACK", ID, "REASON", b"bad", "DEAD"),
    ),
    "nack with a long reason": (
        failing.nack(ID, reason="ü" * 600 + "\udc80"),
        ("NACK", ID, "REASON", ("ü" * 512).encode()),
    ),
    "movejob": (failing.movejob(ID, "q"), ("MOVEJOB", ID, "TO", "q")),
    "movejob of several": (
        failing.movejob([ID, ID], "q", keep_counters=True),
        ("MOVEJOB", ID, ID, "TO", "q", "UNCOUNTED"),
    ),
    "redrive": (failing.redrive("q.dead"), ("REDRIVE", "q.dead")),
    "redrive with all options": (
        failing.redrive("q.dead", to="r", count=5, rate=10, reason="timeout*", older_s=60),
        ("REDRIVE", "q.dead", "TO", "r", "COUNT", 5, "RATE", 10, "REASON", "timeout*", "OLDER", 60),
    ),
    "redrive_status": (failing.redrive_status("q.dead"), ("REDRIVE", "q.dead", "STATUS")),
    "redrive_cancel": (failing.redrive_cancel("q.dead"), ("REDRIVE", "q.dead", "CANCEL")),
    "enqueue": (calls.enqueue(ID), ("ENQUEUE", ID)),
    "dequeue": (calls.dequeue(ID), ("DEQUEUE", ID)),
    "delete": (calls.delete(ID), ("DELJOB", ID)),
    "working": (calls.working(ID), ("WORKING", ID)),
    "show": (calls.show(ID), ("SHOW", ID)),
    "qlen": (calls.qlen("q"), ("QLEN", "q")),
    "qlen exact": (calls.qlen("q", exact=True), ("QLEN", "q", "EXACT")),
    "qpeek": (calls.qpeek("q", -3), ("QPEEK", "q", -3)),
    "qstat": (calls.qstat("q"), ("QSTAT", "q")),
    "ack-result": (calls.ack("D-1", claim=7, result="42"), ("ACKJOB", "D-1", "CLAIM", 7, "RESULT", "42")),
    "ack-copies": (calls.ack("D-1", copies=2, timeout_ms=9), ("ACKJOB", "D-1", "COPIES", 2, "TIMEOUT", 9)),
    "result": (fates.result("D-1"), ("RESULT", "D-1")),
    "results": (fates.results(["D-1", "D-2", "D-1"]), ("RESULT", "D-1", "D-2")),
    "wait": (fates.wait("D-1"), ("WAITJOB", "D-1", "WITHRESULT", "TIMEOUT", 0)),
    "wait-any": (
        fates.wait(["D-1", "D-2"], any=True, timeout_ms=700),
        ("WAITJOB", "D-1", "D-2", "ANY", "WITHRESULT", "TIMEOUT", 700),
    ),
    "qcount": (calls.qcount("q", timeout_ms=700), ("QCOUNT", "q", "TIMEOUT", 700)),
    "qpurge": (
        calls.qpurge("q", states=["queued", "leased"], before_ms=5, timeout_ms=700),
        ("QPURGE", "q", "STATE", "queued", "STATE", "leased", "BEFORE", 5, "TIMEOUT", 700),
    ),
    "qscan": (
        calls.qscan(min_len=1, max_len=5, import_rate=2, page_size=10).page(4),
        ("QSCAN", 4, "COUNT", 10, "MINLEN", 1, "MAXLEN", 5, "IMPORTRATE", 2),
    ),
    "jscan": (
        calls.jscan(queue="q", states=["active", "queued"]).page(0),
        ("JSCAN", 0, "COUNT", 100, "QUEUE", "q", "STATE", "active", "STATE", "queued", "REPLY", "id"),
    ),
    "jscan_details": (calls.jscan_details().page(0), ("JSCAN", 0, "COUNT", 100, "REPLY", "all")),
    "pause": (calls.pause("q", "in", everywhere=True), ("PAUSE", "q", "in", "bcast")),
    "pause that only reads": (calls.pause("q"), ("PAUSE", "q", "state")),
    "qconf_set": (
        calls.qconf_set("q*", {"retry": 30, "pause": "in"}),
        ("QCONF", "q*", "SET", "retry", 30, "pause", "in"),
    ),
    "qconf_unset": (calls.qconf_unset("q", "retry", "ttl"), ("QCONF", "q", "UNSET", "retry", "ttl")),
    "qconf_unset of all": (calls.qconf_unset("q"), ("QCONF", "q", "UNSET", "*")),
    "qconf_get": (calls.qconf_get("q"), ("QCONF", "q", "GET")),
    "qconf_show": (calls.qconf_show(), ("QCONF", "*", "SHOW")),
    "repair_status": (repairs.repair_status(), ("CLUSTER", "REPAIR", "STATUS")),
    "repair_now": (repairs.repair_now(), ("CLUSTER", "REPAIR", "NOW")),
    "schedule_set": (schedules.schedule_set("n", "@daily", "q", "x"), ("SCHEDULE", "n", "SET", "@daily", "q", "x")),
    "schedule_set with options": (
        schedules.schedule_set(
            "n", "0 3 * * *", "q", b"x", zone="UTC", missed="once", strict=False, ttl_s=60, priority=2, meta="m"
        ),
        (
            *("SCHEDULE", "n", "SET", "0 3 * * *", "q", b"x", "TZ", "UTC", "MISSED", "once", "STRICT", "no"),
            *("TTL", 60, "PRIORITY", 2, "META", "m"),
        ),
    ),
    "schedule_delete": (schedules.schedule_delete("n"), ("SCHEDULE", "n", "DEL")),
    "schedule_pause": (schedules.schedule_pause("n"), ("SCHEDULE", "n", "PAUSE")),
    "schedule_resume": (schedules.schedule_resume("n"), ("SCHEDULE", "n", "RESUME")),
    "schedule_run": (schedules.schedule_run("n"), ("SCHEDULE", "n", "RUN")),
    "schedule_show": (schedules.schedule_show("n"), ("SCHEDULE", "n", "SHOW")),
    "schedules": (schedules.schedules(), ("SCHEDULE", "*", "SHOW")),
    "add to a group": (adding.add("q", "x", group="g"), ("ADDJOB", "q", "x", 5000, "GROUP", "g")),
    "qnew": (ordered.qnew("q"), ("QNEW", "q", "ORDERED")),
    "qnew with options": (
        ordered.qnew("q", replicas=2, single=True, prefetch=4, nodes=["a", "b"], force=True),
        ("QNEW", "q", "ORDERED", "REPLICAS", 2, "SINGLE", "PREFETCH", 4, "FORCE", "ON", "a", "b"),
    ),
    "qdrop": (ordered.qdrop("q"), ("QDROP", "q")),
    "qdrop with force": (ordered.qdrop("q", force=True), ("QDROP", "q", "FORCE")),
    "qtype": (ordered.qtype("q"), ("QTYPE", "q")),
    "ordered_init": (ordered.ordered_init(["a", "b"]), ("CLUSTER", "ORDERED", "INIT", "a", "b")),
    "ordered_status": (ordered.ordered_status(), ("CLUSTER", "ORDERED", "STATUS")),
    "hello": (calls.hello(), ("HELLO",)),
    "info": (calls.info("all"), ("INFO", "all")),
    "execute": (calls.execute("CONFIG", "GET", b"*"), ("CONFIG", "GET", b"*")),
}


@pytest.mark.parametrize(("call", "words"), WORDS.values(), ids=WORDS)
def test_call_has_these_words(call: Call[Any], words: tuple[object, ...]) -> None:
    assert call.arguments == words


REPEATABLE: dict[str, tuple[Call[Any], bool]] = {
    "add": (adding.add("q", "x"), False),
    "new_id": (adding.new_id(), True),
    "add with repeat": (adding.add("q", "x", repeat=True), True),
    "get": (calls.get("q"), True),
    "ack": (calls.ack(ID), True),
    "fast_ack": (calls.fast_ack(ID), True),
    "working": (calls.working(ID), True),
    "nack": (failing.nack(ID), False),
    "movejob": (failing.movejob(ID, "q"), True),
    "redrive": (failing.redrive("q"), False),
    "redrive_status": (failing.redrive_status("q"), True),
    "redrive_cancel": (failing.redrive_cancel("q"), False),
    "enqueue": (calls.enqueue(ID), False),
    "qnew": (ordered.qnew("q"), True),
    "qdrop": (ordered.qdrop("q"), False),
    "qtype": (ordered.qtype("q"), True),
    "ordered_init": (ordered.ordered_init(["a"]), False),
    "ordered_status": (ordered.ordered_status(), True),
    "dequeue": (calls.dequeue(ID), False),
    "delete": (calls.delete(ID), False),
    "show": (calls.show(ID), True),
    "qlen": (calls.qlen("q"), True),
    "qpeek": (calls.qpeek("q"), True),
    "qstat": (calls.qstat("q"), True),
    "result": (fates.result("D-1"), True),
    "results": (fates.results(["D-1"]), True),
    "wait": (fates.wait("D-1"), True),
    "qcount": (calls.qcount("q"), True),
    "qpurge": (calls.qpurge("q"), True),
    "repair_status": (repairs.repair_status(), True),
    "repair_now": (repairs.repair_now(), True),
    "schedule_set": (schedules.schedule_set("n", "@daily", "q", "x"), True),
    "schedule_run": (schedules.schedule_run("n"), False),
    "schedules": (schedules.schedules(), True),
    "hello": (calls.hello(), True),
    "qconf_set": (calls.qconf_set("q", {"ttl": 1}), True),
    "qconf_unset": (calls.qconf_unset("q"), True),
    "qconf_get": (calls.qconf_get("q"), True),
    "info": (calls.info(), True),
    "pause that only reads": (calls.pause("q"), True),
    "pause of one node": (calls.pause("q", "in"), False),
    "pause of all nodes": (calls.pause("q", "in", everywhere=True), True),
    "first page of a scan": (calls.qscan().page(0), True),
    "later page of a scan": (calls.jscan().page(8), False),
    "any command": (calls.execute("PING"), False),
}


@pytest.mark.parametrize(("call", "repeat"), REPEATABLE.values(), ids=REPEATABLE)
def test_only_idempotent_calls_are_repeated(call: Call[Any], repeat: bool) -> None:
    assert call.repeat is repeat


@pytest.mark.parametrize(
    ("call", "wait_s"),
    [
        (calls.get("q", timeout_ms=1500), 1.5),
        (calls.get("q"), None),
        (calls.get("q", nohang=True), 0.0),
        (adding.add("q", "x", timeout_ms=250), 0.25),
        (adding.add("q", "x", timeout_ms=0), None),
        (calls.qlen("q"), 0.0),
        (failing.movejob(ID, "q"), 5.0),
    ],
)
def test_call_knows_how_long_it_may_block(call: Call[Any], wait_s: float | None) -> None:
    assert call.wait_s == wait_s


def test_call_without_arguments_is_refused_before_it_is_sent() -> None:
    with pytest.raises(ValueError, match="at least one queue"):
        calls.get([])
    with pytest.raises(ValueError, match="name of a command"):
        calls.execute()
    with pytest.raises(ValueError, match="at least one job"):
        failing.movejob([], "q")


def test_add_to_without_queues_is_refused_before_it_is_sent() -> None:
    none: list[str] = []
    for queues in (none, "mail"):
        with pytest.raises(ValueError, match="sequence of queues"):
            adding.add_to(queues, "x")


def test_a_single_parent_that_is_no_sequence_is_refused() -> None:
    with pytest.raises(ValueError, match="sequence of job IDs"):
        adding.add("q", "x", after=ID)


def test_add_jobs_adds_each_job_with_its_own_options() -> None:
    plain = NewJob("q", "x")
    full = NewJob(
        "r",
        b"y",
        timeout_ms=0,
        replicate=2,
        delay_s=3,
        retry_s=4,
        ttl_s=60,
        maxlen=9,
        key="k",
        window_s=5,
        until="done",
        job_id="i",
        sync=2,
        priority=7,
        meta=b"m",
        retain_s=9,
        after=[ID],
        otherwise="drop",
        group="g",
        asynchronous=True,
        repeat=True,
    )
    one, other = adding.add_jobs([plain, full])
    assert (one, other) == tuple(adding.add(**dataclasses.asdict(job)) for job in (plain, full))
    assert all(getattr(full, field.name) != getattr(plain, field.name) for field in dataclasses.fields(NewJob))


def test_new_job_has_all_options_of_add() -> None:
    options = {name: value.default for name, value in inspect.signature(adding.add).parameters.items()}
    fields = {field.name: field.default for field in dataclasses.fields(NewJob)}
    assert list(fields) == list(options)
    assert {name: fields[name] for name in options if name not in {"queue", "body"}} == {
        name: options[name] for name in options if name not in {"queue", "body"}
    }


def test_add_many_adds_each_body_with_all_options_of_add() -> None:
    one, other = adding.add_many("q", ["a", b"b"], retry_s=4, repeat=True, timeout_ms=100)
    for call, body in ((one, "a"), (other, b"b")):
        single = adding.add("q", body, retry_s=4, repeat=True, timeout_ms=100)
        assert (call.encode(), call.name) == (single.encode(), single.name)
        assert (call.decode, call.repeat, call.wait_s) == (single.decode, single.repeat, single.wait_s)
    with pytest.raises(TypeError, match="retries"):
        list(adding.add_many("q", ["a"], retries=4))  # type: ignore[call-arg]
