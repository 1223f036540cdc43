"""The console shows the whole cluster: each member answers for itself."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from console.conftest import ConsoleNode
from disqued.console.feed import ANSWERS, REFUSES, SILENT, WAITING, Feed
from disqued.console.rates import SAMPLES, Rates
from disqued.console.selection import QueueSelection
from disqued.console.sums import DIFFERENT, longest, queue_rows, queue_sums, totals
from disqued.resp.replies import Failure, Reply
from disqued.testing.ports import free_port
from support.cluster import RealCluster, RealNode

expect.set_options(timeout=20_000)

AT_MOST_ONCE = ("REPLICATE", 1, "RETRY", 0)
OPS = {"Authorization": "Basic " + b64encode(b"ops:secret").decode()}


@pytest.fixture
def real(tmp_path: Path) -> Iterator[RealCluster]:
    with RealCluster(tmp_path, 3, "--http-actions", "yes", meet=False) as cluster:
        cluster.meet()
        cluster.wait_whole()
        yield cluster


def console_of(node: RealNode) -> ConsoleNode:
    """Start a node again with a console."""
    port = free_port()
    node.arguments += ["--http-port", str(port)]
    node.restart()
    return ConsoleNode(node.server, port)


def all_answer(update: Any) -> bool:
    return [member["answer"] for member in update["members"]] == [ANSWERS] * 3


def member_of(update: Any, node: RealNode) -> Any:
    return next(member for member in update["members"] if member["address"] == node.address)


# --- real nodes -------------------------------------------------------------------------------------------------------


def test_queues_are_added_up_over_all_members(real: RealCluster) -> None:
    one, two, three = real.nodes
    console = console_of(one)
    real.wait_whole()
    for node, count in ((one, 1), (two, 2), (three, 3)):
        for _ in range(count):
            node.call("ADDJOB", "mail", "body", 0, "REPLICATE", 1)
    three.call("ADDJOB", "only-three", "body", 0, "REPLICATE", 1)
    three.call("PAUSE", "mail", "in")

    def whole(update: Any) -> bool:
        return all_answer(update) and [queue["len"] for queue in update["queues"]] == [6, 1]

    update = console.state("queue=mail", whole)
    mail, only = update["queues"]
    assert (mail["shown"], mail["jobs_in"], mail["members"], mail["pause"]) == ("mail", 6, 3, DIFFERENT)
    assert (only["shown"], only["members"]) == ("only-three", 1)
    assert {row["id"]: row["len"] for row in update["opened_at"]} == {one.id: 1, two.id: 2, three.id: 3}
    assert update["opened"]["len"] == 6
    assert update["totals"]["queued_jobs"] == 7
    assert update["totals"]["asked"] == update["totals"]["answering"] == 3
    assert member_of(update, three)["figures"]["queued_jobs"] == 4


def test_ordered_queue_is_counted_once(real: RealCluster) -> None:
    one, two, three = real.nodes
    console = console_of(one)
    real.wait_whole()
    assert one.call("CLUSTER", "ORDERED", "INIT", one.id, two.id, three.id) == b"OK"
    for queue, node in (("steps", two), ("other", three)):
        assert one.call("QNEW", queue, "ORDERED", "ON", node.id) == b"OK"
        for _ in range(3):
            one.call("ADDJOB", queue, "body", 0)

    def whole(update: Any) -> bool:
        return all_answer(update) and [queue["len"] for queue in update["queues"]] == [3, 3]

    update = console.state("queue=steps", whole)
    assert {queue["shown"]: queue["members"] for queue in update["queues"]} == {"steps": 1, "other": 1}
    assert (update["opened"]["len"], update["opened"]["jobs_in"]) == (3, 3)


@pytest.mark.slow
def test_member_that_does_not_answer_is_shown_as_silent(real: RealCluster) -> None:
    one, two, three = real.nodes
    console = console_of(one)
    real.wait_whole()
    for node in (two, three):
        node.call("ADDJOB", "mail", "body", 0, "REPLICATE", 1)
    with console.events() as updates:
        next(update for update in updates if all_answer(update) and update["totals"]["queued_jobs"] == 2)
        three.stop()
        update = next(update for update in updates if member_of(update, three)["answer"] == SILENT)
        assert update["totals"]["answering"] == 2
        assert member_of(update, two)["answer"] == ANSWERS
        assert member_of(update, three)["figures"] == {}
        three.cont()
        next(update for update in updates if all_answer(update) and update["totals"]["queued_jobs"] == 2)


@pytest.mark.slow
def test_user_sees_what_each_member_permits(real: RealCluster) -> None:
    one, two, three = real.nodes
    console = console_of(one)
    real.wait_whole()
    for node, rules in ((one, "~mail:*"), (two, "~mail:*"), (three, "~none")):
        node.call("ACL", "SETUSER", "ops", "on", ">secret", rules, "+@all")
        for queue in ("mail:a", "billing"):
            node.call("ADDJOB", queue, "body", 0, "REPLICATE", 1)
    two.call("ACL", "SETUSER", "ops", "-info")
    with console.events(headers=OPS) as updates:
        update = next(update for update in updates if len(update["members"]) == 3 and not waits(update))
        update = next(update for update in updates if update["queues"] and update["queues"][0]["len"] == 2)
    assert [queue["shown"] for queue in update["queues"]] == ["mail:a"]
    refusing = member_of(update, two)
    assert refusing["answer"] == REFUSES
    assert "NOPERM" in refusing["why"]
    assert member_of(update, three)["answer"] == ANSWERS


def waits(update: Any) -> bool:
    return any(member["answer"] == WAITING for member in update["members"])


def test_drain_in_progress_is_shown(real: RealCluster) -> None:
    one, two, three = real.nodes
    console = console_of(one)
    real.wait_whole()
    two.call("PAUSE", "mail", "in")
    three.call("PAUSE", "mail", "in")
    three.call("CLUSTER", "LEAVING", "yes")
    update = console.state("", lambda update: member_of(update, three)["figures"].get("leaving_done") == "yes")
    assert "leaving" in member_of(update, three)["flags"]
    assert update["totals"]["leaving_jobs_left"] == 0


def test_page_shows_sums_and_members(real: RealCluster, browser: Browser) -> None:
    one, two, three = real.nodes
    console = console_of(one)
    real.wait_whole()
    for node, count in ((two, 2), (three, 3)):
        for _ in range(count):
            node.call("ADDJOB", "mail", "body", 0, "REPLICATE", 1)
    page = browser.new_page()
    page.goto(console.address)
    expect(page.locator("#queues tbody tr", has_text="mail").locator("td").first).to_have_text("5")
    expect(page.locator("#members tbody tr")).to_have_count(3)
    expect(page.locator("#members .chip", has_text="member")).to_have_count(3)
    members = page.locator("#cluster-tiles .tile", has_text=re.compile("^Members"))
    expect(members).to_contain_text("3 of 3")
    page.locator("#queues a").click()
    expect(page.locator("#queue-members tbody tr")).to_have_count(2)
    expect(page.locator("#queue-members tbody tr", has_text=three.address).locator("td").first).to_have_text("3")
    page.go_back()
    three.stop()
    expect(members).to_contain_text("2 of 3")
    expect(page.locator("#queues-note")).to_have_text("Without a member that does not answer.")
    expect(page.locator("#queues tbody tr", has_text="mail").locator("td").first).to_have_text("2")
    page.close()


def dead_letter(real: RealCluster, node: RealNode, body: str, *options: str | int) -> str:
    """Add a job on a node, and reject it there; returns the ID of its dead letter, which may be on another node.

    That of an at-most-once job is on the same node, and only there.
    """
    node.call("ADDJOB", "mail", body, 5000, *options)
    ((_, job, _),) = node.call("GETJOB", "FROM", "mail")
    before = dead_letters(real)
    node.call("NACK", job, "REASON", f"reason {body[:5]}", "DEAD")
    real.wait_until(lambda: dead_letters(real) - before, "there is a dead letter")
    return (dead_letters(real) - before).pop()


def dead_letters(real: RealCluster) -> set[str]:
    return {job.decode() for node in real.nodes for job in node.call("JSCAN", 0, "BUSYLOOP", "STATE", "dead")[1]}


def test_dead_letters_of_all_members_are_shown_and_redriven(real: RealCluster, browser: Browser) -> None:
    one, two, three = real.nodes
    console = console_of(one)
    real.wait_whole()
    everywhere = dead_letter(real, two, "two", "REPLICATE", 3)
    alone = dead_letter(real, three, "three" + "x" * 5000, *AT_MOST_ONCE)
    dead_letter(real, one, "one", *AT_MOST_ONCE)
    page = browser.new_page()
    page.goto(f"{console.address}#dead")
    expect(page.locator("#dead-note")).to_have_text("3 dead letters on 3 members.")
    expect(page.locator("#dead-queues tbody tr td").first).to_have_text("3")
    expect(page.locator("#dead-groups tbody tr")).to_have_count(3)
    page.locator(f"#dead-jobs button[title='{alone}']").click()
    expect(page.locator("#dead-jobs .facts")).to_contain_text(three.address)
    expect(page.locator("#dead-jobs .facts")).to_contain_text("4.9 KB, only the first 2 KB are shown")
    page.get_by_label(f"Select job {alone}").check()
    page.get_by_role("button", name="Redrive selected").click()
    expect(page.locator("#notice")).to_contain_text("of which this node has no copy stay")
    page.get_by_label(f"Select job {everywhere}").check()
    page.get_by_role("button", name="Redrive selected").click()
    page.locator("#confirm-yes").click()
    expect(page.locator("#live")).to_have_text("1 of 1 dead letter redriven.")
    expect(page.locator("#dead-note")).to_have_text("2 dead letters on 3 members.")
    page.get_by_label(f"Select job {alone}").check()
    page.get_by_role("button", name="Delete selected").click()
    page.locator("#confirm-yes").click()
    expect(page.locator("#dead-note")).to_have_text("1 dead letter on 3 members.")
    assert three.call("SHOW", alone) is None
    dead_letter(real, three, "three", *AT_MOST_ONCE)
    page.get_by_role("button", name="Refresh").last.click()
    page.get_by_role("button", name="Redrive queue mail.dead").click()
    page.locator("#confirm-yes").click()
    expect(page.locator("#dead-note")).to_have_text("No dead letters on 3 members.")
    assert sum(node.call("QLEN", "mail") for node in real.nodes) == 3
    three.stop()
    expect(page.locator("#dead-note")).to_have_text("No dead letters on 3 members.")
    page.get_by_role("button", name="Refresh").last.click()
    expect(page.locator("#dead-note")).to_contain_text(f"Not included: {three.address} (")
    three.cont()
    page.close()


def test_jobs_of_other_members_are_found_and_missing_members_reported(real: RealCluster) -> None:
    one, two, three = real.nodes
    console = console_of(one)
    real.wait_whole()
    dead = dead_letter(real, two, "two", *AT_MOST_ONCE)
    silent = three.id
    found = console.ask(f"/console/jobs?state=dead&member={two.id}").json
    assert ([job["id"] for job in found["jobs"]], found["cursor"]) == ([dead], "0")
    assert console.ask(f"/console/jobs?state=dead&member={one.id}").json["jobs"] == []
    for query in (f"state=dead&member={'0' * 40}", f"state=dead&member={two.id}&queue=mail"):
        reply = console.ask(f"/console/jobs?{query}")
        assert (reply.status, reply.text) == (400, "unknown member, or a queue with it\n")
    three.stop()
    reply = console.ask(f"/console/jobs?state=dead&member={silent}")
    assert (reply.status, reply.text) == (503, "the member does not answer\n")
    three.cont()
    two.call("ACL", "SETUSER", "default", "-jscan")
    reply = console.ask(f"/console/jobs?state=dead&member={two.id}")
    assert reply.status == 503
    assert reply.text.startswith("NOPERM")


# --- one feed ---------------------------------------------------------------------------------------------------------


class Answering:
    """A member that answers when the test says so."""

    def __init__(self) -> None:
        self.replies: Any = None
        self.asked: list[list[bytes]] = []
        self.cancelled = 0
        self.reachable = True

    def send(self, requests: Any, then: Any) -> Any:
        if not self.reachable:
            return None
        self.asked = [list(words) for words in requests]
        self.replies = then
        return self.cancel

    def cancel(self) -> None:
        self.cancelled += 1

    def answer(self, *replies: Reply) -> None:
        self.replies(list(replies))


def stat(name: bytes, length: int, into: int = 0, pause: bytes = b"none") -> list[Reply]:
    fields: list[tuple[bytes, Reply]] = [
        *((b"name", name), (b"len", length), (b"age", 9), (b"idle", 1), (b"blocked", 0), (b"import-rate", 0)),
        *((b"jobs-in", into), (b"jobs-out", 0), (b"pause", pause)),
    ]
    return [word for pair in fields for word in pair]


def fed(member: Answering, begin_s: float = 10.0) -> Feed:
    return Feed(member.send, QueueSelection(b"", "length", 3), begin_s, lambda: None)


def told(feed: Feed, member: Answering, now_s: float, *queues: list[Reply]) -> None:
    """The member tells about the queues that the page wants."""
    feed.step(now_s, [bytes(queue[1]) for queue in queues])  # type: ignore[arg-type]
    assert member.asked[0] == [b"info"]
    member.answer(b"queued_jobs:1\r\ntotal_commands_processed:%d" % (now_s * 10), *queues)


def test_member_is_silent_when_its_answer_takes_a_second() -> None:
    member = Answering()
    feed = fed(member)
    told(feed, member, 10.0, stat(b"mail", 1))
    assert (feed.state, feed.figures["queued_jobs"]) == (ANSWERS, 1)
    feed.step(11.0, [])
    late = member.replies
    feed.step(11.9, [])
    assert feed.state == ANSWERS
    feed.step(12.1, [])
    assert (feed.state, feed.figures, feed.queues, member.cancelled) == (SILENT, {}, {}, 1)
    member.reachable = False
    feed.step(13.2, [])
    assert feed.state == SILENT
    member.reachable = True
    told(feed, member, 14.3, stat(b"mail", 1))
    assert feed.state == ANSWERS
    assert late is not member.replies


def test_queues_of_a_member_are_found_and_measured() -> None:
    member = Answering()
    feed = fed(member)
    feed.step(0.0, [])
    assert member.asked[0][0] == b"qscan"
    member.answer([b"0", [b"a", b"b"]])
    feed.step(0.1, [])
    assert member.asked == [[b"qstat", b"a"], [b"qstat", b"b"]]
    member.answer(stat(b"a", 3), stat(b"b", 5))
    assert feed.selection.names == [b"b", b"a"]
    assert feed.selection.complete


def test_replies_that_do_not_match_are_ignored() -> None:
    member = Answering()
    feed = fed(member)
    feed.step(10.0, [])
    member.answer()
    assert feed.state == WAITING
    feed.step(11.0, [])
    member.answer(Failure(b"NOPERM no"))
    assert (feed.state, feed.why) == (REFUSES, "NOPERM no")


def test_closed_feed_asks_nothing() -> None:
    member = Answering()
    feed = fed(member)
    feed.step(10.0, [])
    feed.close()
    assert member.cancelled == 1
    member.asked = []
    feed.step(12.0, [])
    assert member.asked == []


def test_rates_are_added_up_and_do_not_jump_when_a_member_is_missing() -> None:
    members = [Answering(), Answering()]
    feeds = {f"node-{number}": fed(member) for number, member in enumerate(members)}
    for second in range(3):
        for member, feed in zip(members, feeds.values(), strict=True):
            told(feed, member, 10.0 + second, stat(b"mail", 2, into=100 * second))
    found = queue_sums(feeds, b"mail")
    assert found is not None
    assert (found["len"], found["jobs_in"], found["in_per_s"], found["pause"]) == (4, 400, 200.0, "none")
    assert totals(feeds.values())["requests_per_s"] == 20.0
    members[1].reachable = False
    for second in (3, 4):
        told(feeds["node-0"], members[0], 10.0 + second, stat(b"mail", 2, into=100 * second))
        feeds["node-1"].step(10.0 + second, [])
    found = queue_sums(feeds, b"mail")
    assert found is not None
    assert (found["len"], found["in_per_s"], found["members"]) == (2, 100.0, 1)
    assert [row["id"] for row in queue_rows(feeds, b"mail")] == ["node-0"]
    assert queue_sums(feeds, b"gone") is None


def test_longest_queues_are_those_of_the_sums() -> None:
    """A queue that is short at each member can be the longest of the cluster."""
    feeds = [fed(Answering()) for _ in range(3)]
    for number, feed in enumerate(feeds):
        feed.selection.measured([(b"big-%d" % number, 5), (b"everywhere", 3)])
    assert longest(feeds, feeds[0].selection) == [b"everywhere", b"big-0", b"big-1"]


def test_rate_is_that_of_the_last_samples_and_never_negative() -> None:
    rates = Rates()
    assert rates.per_second(b"q") is None
    rates.add(1.0, {b"q": (1000,)})
    assert rates.per_second(b"q") is None
    for second in range(SAMPLES):
        rates.add(2.0 + second, {b"q": (10 * second,), b"other": (1,)})
    assert rates.per_second(b"q") == (10.0,)
    rates.add(20.0, {b"q": (0,)})
    assert rates.per_second(b"q") == (0.0,)
