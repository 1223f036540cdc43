"""The page of one job in the console: unfinished, ended, and unknown."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from console.conftest import Look, OpenNode
from disqued.console.job import ENTRIES, described, refusal
from disqued.resp.replies import Failure, Reply

UNKNOWN = "D-5ca1ab1e-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"


@pytest.mark.parametrize("query", ["", "job=D-1", "job=" + "%C3%A4" * 20])
def test_word_that_is_no_id_is_refused(open_node: OpenNode, query: str) -> None:
    assert open_node().ask(f"/console/job?{query}").status == 400


def test_job_that_no_node_knows_has_nothing(open_node: OpenNode) -> None:
    found = open_node().ask(f"/console/job?job={UNKNOWN}").json
    assert found == {"job": None, "end": None, "is_known": False, "entries": 0, "log": []}


def test_end_and_log_of_a_job_are_told(open_node: OpenNode) -> None:
    node = open_node()
    job = node.call("ADDJOB", "q", "body", 0, "RETAIN", 60).decode()
    path = f"/console/job?job={job.replace('+', '%2B')}"
    found = node.ask(path).json
    assert (found["job"]["state"], found["end"], found["is_known"]) == ("queued", None, True)
    node.call("LOGJOB", job, b"half \xff done")
    node.call("ACKJOB", job, "RESULT", b"x" * 5000)
    found = node.ask(path).json
    assert (found["job"], found["entries"]) == (None, 1)
    assert (found["log"][0]["claim"], found["log"][0]["entry"]) == ("", "half \\xff done")
    end = found["end"]
    assert isinstance(end.pop("ended_ms"), int)
    assert end == {"outcome": "done", "claim": "", "result": "x" * 2048, "result_bytes": 5000, "is_text": True}


def test_only_the_last_entries_of_a_long_log_are_sent() -> None:
    log: list[Reply] = [[0, number, 5, b"entry"] for number in range(ENTRIES + 7)]
    found = described([None, None, log], 0)
    assert (found["entries"], len(found["log"]), found["log"][0]["seq"]) == (ENTRIES + 7, ENTRIES, 7)


def test_user_who_may_read_one_of_both_sees_that() -> None:
    denied = Failure(b"NOPERM no permission")
    assert refusal([denied, None, denied]) == refusal([None, denied, denied]) == ""
    assert refusal([denied, denied, None]) == "NOPERM no permission"


def test_finished_job_is_shown_as_finished(open_node: OpenNode, look: Look) -> None:
    node = open_node()
    job = node.call("ADDJOB", "q", "body", 0, "RETAIN", 60).decode()
    node.call("LOGJOB", job, "half done")
    node.call("ACKJOB", job, "RESULT", "64 x 48")
    page = look(node)
    page.get_by_role("searchbox", name="Name").fill(job)
    page.get_by_role("searchbox", name="Name").press("Enter")
    expect(page.locator("#job-title")).to_have_text(f"Job {job}")
    expect(page.locator("#job-note")).to_have_text("This job is done: a worker acknowledged it.")
    expect(page.locator("#job-facts")).to_contain_text("Outcomedone")
    expect(page.get_by_label("Result")).to_have_text("64 x 48")
    expect(page.locator("#job-log tbody tr")).to_contain_text("half done")


def test_unfinished_and_unknown_jobs_are_told_apart(open_node: OpenNode, look: Look) -> None:
    node = open_node()
    job = node.call("ADDJOB", "q", "the body", 0).decode()
    page = look(node, "#job=" + job.replace("/", "%2F").replace("+", "%2B"))
    expect(page.locator("#job-note")).to_have_text("This job has not ended.")
    expect(page.locator("#job-facts")).to_contain_text("Queueq")
    expect(page.get_by_label("Body")).to_have_text("the body")
    page.goto(f"{node.address}#job={UNKNOWN}")
    expect(page.locator("#job-note")).to_contain_text("No node that answers knows this job")
    expect(page.locator("#job-text")).to_be_hidden()


def test_jobs_of_a_graph_are_links_to_their_pages(open_node: OpenNode, look: Look) -> None:
    node = open_node()
    parent = node.call("ADDJOB", "extract", "", 0, "RETAIN", 60).decode()
    other = node.call("ADDJOB", "other", "", 0).decode()
    child = node.call("ADDJOB", "load", "", 0, "AFTER", parent, "AFTER", other).decode()
    node.call("GETJOB", "FROM", "extract")
    node.call("ACKJOB", parent)
    page = look(node, "#job=" + child.replace("/", "%2F").replace("+", "%2B"))
    graph = page.locator("#job-graph")
    graph.wait_for()
    assert graph.evaluate("part => part.scrollHeight <= part.clientHeight"), "the graph is cut off"
    page.get_by_role("link", name=f"done, job {parent}").click()
    expect(page.locator("#job-note")).to_have_text("This job is done: a worker acknowledged it.")
