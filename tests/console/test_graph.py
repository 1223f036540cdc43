"""The graph of a job in the console: which jobs it has, where they stand, and when it stops asking."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import expect

from console.conftest import Look, OpenNode
from disqued.console.graph import MAX_JOBS, MAX_S, Graph
from disqued.resp.replies import Failure, Reply


class Page:
    """The exchange of a request; each RESULT takes `result_s`."""

    def __init__(self, result_s: float = 0.0) -> None:
        self.now = 0.0
        self.result_s = result_s
        self.refused = ""

    def now_s(self) -> float:
        return self.now

    def answer(self, _status: int, text: str) -> None:
        self.refused = text


def name(number: int | str) -> bytes:
    return f"D-{number}".encode()


def show(job: bytes, after: tuple[bytes, ...] = (), children: tuple[bytes, ...] = (), **more: Reply) -> Reply:
    """A reply of SHOW."""
    fields: list[Reply] = [b"id", job, b"queue", b"q", b"state", b"active"]
    for field, ids in ((b"after", after), (b"waits-for", after), (b"children", children)):
        if ids:
            fields += [field, [*ids]]
    for field_name, value in more.items():
        fields += [field_name.replace("_", "-").encode(), value]
    return fields


def drawn(page: Page, shown: dict[bytes, Reply], ends: dict[bytes, Reply], root: bytes) -> tuple[Any, list[bytes]]:
    """The graph of a job, and the IDs that RESULT was asked about."""
    asked: list[bytes] = []
    found: list[Any] = []

    def ask(requests: Any, then: Any) -> None:
        if requests[0][0] == b"result":
            asked.append(requests[0][1])
            page.now += page.result_s
            then([ends.get(requests[0][1])])
        else:
            then([shown.get(words[1]) for words in requests])

    exchange: Any = page
    Graph(exchange, ask, found.append).begin(root)
    return found[0] if found else None, asked


def columns(graph: Any) -> dict[str, int]:
    return {job["id"]: job["column"] for job in graph["jobs"]}


def test_parents_stand_to_the_left_of_their_children_also_over_a_short_cut() -> None:
    a, b, c, d = map(name, "abcd")
    shown = {c: show(c, (a, b), (d,)), b: show(b, (a,), (c,)), a: show(a, (), (b, c)), d: show(d, (c,))}
    graph, asked = drawn(Page(), shown, {}, c)
    assert columns(graph) == {"D-a": -2, "D-b": -1, "D-c": 0, "D-d": 1}
    assert sorted(map(tuple, graph["edges"])) == [("D-a", "D-b"), ("D-a", "D-c"), ("D-b", "D-c"), ("D-c", "D-d")]
    assert {job["id"]: job["relation"] for job in graph["jobs"]} == {
        "D-a": "parent",
        "D-b": "parent",
        "D-c": "job",
        "D-d": "child",
    }
    assert asked == []


def test_children_that_wait_for_each_other_stand_in_their_order() -> None:
    a, b, c = map(name, "abc")
    graph, _ = drawn(Page(), {a: show(a, (), (b, c)), b: show(b, (a, c)), c: show(c, (a,), (b,))}, {}, a)
    assert columns(graph) == {"D-a": 0, "D-c": 1, "D-b": 2}


def test_cluster_is_asked_about_jobs_that_are_not_here() -> None:
    a, b, c = map(name, "abc")
    ends: dict[bytes, Reply] = {a: [b"done", 5, 0, None], b: Failure(b"NOPERM")}
    graph, asked = drawn(Page(), {c: show(c, (a, b))}, ends, c)
    assert {job["id"]: job["state"] for job in graph["jobs"]} == {"D-c": "held", "D-a": "done", "D-b": "unknown"}
    assert asked == [a, b]


def test_dead_letters_and_acknowledged_jobs_are_named() -> None:
    a, b = map(name, "ab")
    shown = {b: show(b, (a,)), a: show(a, dead_since=5)}
    graph, _ = drawn(Page(), shown, {}, b)
    assert [job["state"] for job in graph["jobs"]] == ["held", "dead"]


def test_number_of_jobs_and_time_are_bounded() -> None:
    root = name("root")
    many = tuple(map(name, range(1000)))
    page = Page(result_s=MAX_S / 4)
    graph, asked = drawn(page, {root: show(root, (), many)}, {}, root)
    assert (len(graph["jobs"]), graph["left"]) == (MAX_JOBS, 1000 - MAX_JOBS + 1)
    assert len(asked) == 4


def test_error_of_the_node_is_shown() -> None:
    page = Page()
    graph, _ = drawn(page, {name("a"): Failure(b"NOPERM no permission")}, {}, name("a"))
    assert (graph, page.refused) == (None, "NOPERM no permission")


@pytest.mark.parametrize("query", ["", "job=D-1", "job=" + "%C3%A4" * 20])
def test_word_that_is_no_id_is_refused(open_node: OpenNode, query: str) -> None:
    assert open_node().ask(f"/console/graph?{query}").status == 400


def test_unknown_job_is_a_graph_of_its_own(open_node: OpenNode) -> None:
    unknown = "D-5ca1ab1e-AAAAAAAAAAAAAAAAAAAAAAAA-05a1"
    graph = open_node().ask(f"/console/graph?job={unknown}").json
    assert graph == {
        "jobs": [{"id": unknown, "queue": "", "state": "unknown", "column": 0, "relation": "job"}],
        "edges": [],
        "left": 0,
    }


def test_graph_of_a_job_shows_its_parents_and_children(open_node: OpenNode, look: Look) -> None:
    node = open_node()
    source = node.call("ADDJOB", "extract", "", 0).decode()

    def after(queue: str, *parents: str) -> str:
        words = [word for parent in parents for word in ("AFTER", parent)]
        return str(node.call("ADDJOB", queue, "", 0, "RETAIN", 3600, *words).decode())

    clean, tidy = after("clean", source), after("tidy", source)
    join = after("join", clean, tidy)
    after("report", join)
    node.call("GETJOB", "FROM", "extract")
    node.call("ACKJOB", source)
    page = look(node, "#queue=join")
    page.get_by_label("Show").select_option("held")
    page.locator("#jobs button.link").click()
    expect(page.locator("#jobs .facts")).to_contain_text("2 of 2 jobs")
    graph = page.get_by_role("group", name="Graph of 5 jobs, parents to the left of their children")
    expect(graph.locator(".edge")).to_have_count(5)
    box = page.locator("#jobs .jobgraph")
    assert box.evaluate("box => box.scrollHeight <= box.clientHeight"), "no job is cut off"
    label = f"queue join, waits for others, job {join}, after clean and tidy"
    expect(graph.get_by_role("link", name=label)).to_be_visible()
    places = [graph.get_by_role("link", name=f"queue {name}").bounding_box() for name in ("clean", "join", "report")]
    lefts = [place["x"] for place in places if place]
    assert (len(lefts), lefts) == (3, sorted(lefts))
    graph.get_by_role("link", name="queue tidy").focus()
    expect(graph.locator(".node:focus .state")).to_have_text("queued")
