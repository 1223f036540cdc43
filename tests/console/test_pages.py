"""The console over HTTP, on real nodes: pages, actions and access control."""

from __future__ import annotations

import http.client
import random
import socket
import threading
import time
from base64 import b64encode
from pathlib import Path

import pytest

from console.conftest import OWN, ConsoleNode, OpenNode
from disqued.console.jobs import MAX_BODY_BYTES
from disqued.console.routes import MAX_LIVE_PAGES
from disqued.console.text import key_of
from disqued.httproutes import MAX_NAME_BYTES, MAX_PATTERN_BYTES
from disqued.testing.ports import LOOPBACK, free_port
from persistence.samples import kept, make_job
from server.test_http import LONG
from support.cluster import RealCluster

HOSTILE = b"\xff\x00<img src=x onerror=alert(1)>\"'&\r\n\xe2\x80\xae"
PASSWORD = "pass wörd"
BASIC = {"Authorization": "Basic " + b64encode(f"default:{PASSWORD}".encode()).decode()}
BEARER = {"Authorization": f"Bearer {PASSWORD}".encode().decode("latin-1")}
ALL_PAGES = ["/console/events", "/console/jobs?queue=q"]


def wait_for_no_clients(node: ConsoleNode) -> None:
    """Wait until the clients of the console have disappeared from CLIENT LIST."""
    deadline = time.monotonic() + 20
    with node.client() as client:
        while len(client.call("CLIENT", "LIST").splitlines()) > 1:
            assert time.monotonic() < deadline
            time.sleep(0.02)


# --- the files --------------------------------------------------------------------------------------------------------


def test_page_loads_only_files_of_the_node(open_node: OpenNode) -> None:
    node = open_node("--requirepass", "secret")
    page = node.ask("/")
    assert page.status == 200
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert page.headers["X-Frame-Options"] == "DENY"
    assert page.headers["X-Content-Type-Options"] == "nosniff"
    assert "http://" not in page.text
    assert "https://" not in page.text
    wanted = [part.split('"')[0] for part in page.text.split("console/")[1:]]
    assert {"main.js", "console.css", "icon.svg"} <= set(wanted)
    for name in wanted:
        assert node.ask(f"/console/{name}").status == 200
    script = node.ask("/console/main.js")
    assert script.headers["Content-Type"] == "text/javascript; charset=utf-8"
    for line in script.text.splitlines():
        if line.startswith("import"):
            assert node.ask("/console/" + line.split("./")[1].rstrip('";')).status == 200


@pytest.mark.parametrize("target", ["/console/", "/console/../routes.py", "/console/%2e%2e/routes.py", "/console/x.js"])
def test_other_files_are_not_found(acting_node: ConsoleNode, target: str) -> None:
    reply = acting_node.ask(target)
    assert reply.status == 404
    assert "/console/main.js" not in reply.text


# --- live figures -----------------------------------------------------------------------------------------------------


def test_live_page_is_updated_once_a_second(open_node: OpenNode) -> None:
    node = open_node()
    with node.client() as client:
        for _ in range(3):
            client.call("ADDJOB", "mail", "x", 0)
        client.call("ADDJOB", "other", "x", 0)
        with node.events() as updates:
            first = next(update for update in updates if update["complete"])
            assert first["node"] == client.call("CLUSTER", "MYID").decode()
            assert first["figures"]["registered_jobs"] == 4
            assert [(queue["queue"], queue["len"]) for queue in first["queues"]] == [("mail", 3), ("other", 1)]
            assert first["actions"] is False
            assert first["opened"] is None
            assert [member["myself"] for member in first["members"]] == [True]
            client.call("ADDJOB", "other", "x", 0)
            client.call("ADDJOB", "other", "x", 0)
            client.call("ADDJOB", "other", "x", 0)
            second = next(updates)
            assert second["now_ms"] - first["now_ms"] >= 900
            assert [(queue["queue"], queue["jobs_in"]) for queue in second["queues"]] == [("other", 4), ("mail", 3)]
    wait_for_no_clients(node)


def test_queues_are_searched_and_one_can_be_opened(open_node: OpenNode) -> None:
    node = open_node()
    with node.client() as client:
        client.pipeline([("ADDJOB", f"q{number % 300}", "x", 0) for number in range(600)])
        client.call("ADDJOB", HOSTILE, "x", 0)
    update = node.state(f"match=q29&sort=name&most=7&queue={key_of(HOSTILE)}", lambda update: update["complete"])
    assert [queue["queue"] for queue in update["queues"]] == ["q29", *(f"q29{digit}" for digit in range(6))]
    assert update["opened"]["queue"] == key_of(HOSTILE)
    assert update["opened"]["shown"] == "\\xff\\x00<img src=x onerror=alert(1)>\"'&\\r\\n\\u202e"
    assert node.state("queue=gone")["opened"] is None


@pytest.mark.parametrize(
    "query",
    [
        "sort=size",
        "most=0",
        "most=101",
        "most=x",
        "most=-1",
        "most=",
        "most=000000100000000",
        "most=" + "1" * 5000,
        "match=" + "a" * (MAX_PATTERN_BYTES + 1),
        "match=" + "%FF*" * 100,
        "queue=" + "q" * (MAX_NAME_BYTES + 1),
        "&".join(["a=1"] * 20),
    ],
)
def test_invalid_query_is_refused(acting_node: ConsoleNode, query: str) -> None:
    assert acting_node.ask(f"/console/events?{query}").status == 400


def test_names_and_patterns_of_maximum_length_are_allowed(open_node: OpenNode) -> None:
    node = open_node()
    name = "%FF" * MAX_NAME_BYTES
    with node.client() as client:
        client.call("ADDJOB", b"\xff" * MAX_NAME_BYTES, "x", 0)
    update = node.state(f"match={'%FF' * MAX_PATTERN_BYTES}&queue={name}&most=100", lambda update: update["complete"])
    assert [queue["queue"] for queue in update["queues"]] == [name]
    assert update["opened"]["queue"] == name


def test_queues_with_long_names_do_not_block_the_page(open_node: OpenNode) -> None:
    node = open_node()
    with node.client() as client:
        for number in range(20):
            client.call("ADDJOB", b"%d" % number + b"\xff" * 200_000, "x", 0)
        client.call("ADDJOB", "mail", "x", 0)
        with node.events() as updates:
            update = next(update for update in updates if update["complete"])
            assert client.call("PING") == b"PONG"
            assert [queue["queue"] for queue in update["queues"]] == ["mail"]
            assert update["figures"]["registered_queues"] == 21


def test_slow_pattern_does_not_block_clients(open_node: OpenNode) -> None:
    node = open_node()
    with node.client() as client:
        client.pipeline([("ADDJOB", b"%03d" % number + b"a" * 237, "x", 0) for number in range(100)])
        client.call("ADDJOB", "a" * 120 + "b", "x", 0)
        with node.events(f"match=*{'a' * 120}b") as updates:
            for update in updates:
                assert client.call("PING") == b"PONG"
                if update["complete"]:
                    break
            assert [queue["queue"] for queue in update["queues"]] == ["a" * 120 + "b"]


def test_number_of_live_pages_is_limited(open_node: OpenNode) -> None:
    node = open_node()
    connections = []
    try:
        for _ in range(MAX_LIVE_PAGES):
            connection = http.client.HTTPConnection(LOOPBACK, node.http_port, timeout=30)
            connections.append(connection)
            connection.request("GET", "/console/events")
            assert connection.getresponse().status == 200
        assert node.ask("/console/events").status == 503
        assert node.ask("/livez").status == 200
    finally:
        for connection in connections:
            connection.close()
    wait_for_no_clients(node)
    assert node.state()["members"]


def test_members_of_the_cluster_are_listed(tmp_path: Path) -> None:
    port = free_port()
    with RealCluster(tmp_path, 3, meet=False) as cluster:
        one, _, three = cluster.nodes
        one.kill()
        one.arguments += ["--http-port", str(port)]
        one.restart()
        cluster.meet()
        cluster.wait_whole()
        node = ConsoleNode(one.server, port)
        update = node.state()
        assert update["known_members"] == 3
        assert update["members"][0]["myself"]
        assert {member["address"] for member in update["members"]} == {member.address for member in cluster.nodes}
        assert all(member["connected"] and not member["flags"] for member in update["members"])

        three.kill()
        update = node.state("", lambda update: any("fail" in member["flags"] for member in update["members"]))
        assert [member["address"] for member in update["members"]][1] == three.address, "failed nodes come first"
        assert not update["members"][1]["connected"]


def test_client_limit_is_reported(open_node: OpenNode) -> None:
    node = open_node()
    wait_for_no_clients(node)
    with node.client() as client:
        client.call("CONFIG", "SET", "maxclients", 1)
        reply = node.ask("/console/events")
    assert (reply.status, reply.text) == (503, "ERR max number of clients reached\n")


def test_loading_node_is_shown(open_node: OpenNode, tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    records = [kept(make_job(random.Random(seed), b"body %d" % seed)) for seed in range(100)]
    (tmp_path / "kept" / "disque.aof").write_bytes(b"".join(records) * (LONG // 100))
    node = open_node("--dir", str(tmp_path / "kept"), "--appendonly", "yes", "--http-actions", "yes")
    update = node.state()
    assert update["figures"]["loading"] == 1
    assert (update["queues"], update["members"]) == ([], [])
    refused = node.ask("/console/jobs?queue=q")
    assert (refused.status, refused.text) == (503, "LOADING Disque is loading the dataset in memory\n")
    assert node.act(action="pause", queue="q", pause="in").status == 400
    update = node.state("", lambda update: not update["figures"]["loading"])
    assert len(update["members"]) == 1


# --- jobs -------------------------------------------------------------------------------------------------------------


def test_oldest_and_newest_jobs_are_listed(open_node: OpenNode) -> None:
    node = open_node()
    with node.client() as client:
        ids = [client.call("ADDJOB", HOSTILE, f"body {number}", 0).decode() for number in range(30)]
    oldest = node.ask(f"/console/jobs?queue={key_of(HOSTILE)}").json
    assert [job["id"] for job in oldest["jobs"]] == ids[:20]
    assert (oldest["jobs"][0]["body"], oldest["jobs"][0]["state"]) == ("body 0", "queued")
    youngest = node.ask(f"/console/jobs?queue={key_of(HOSTILE)}&state=youngest").json
    assert [job["id"] for job in youngest["jobs"]] == ids[:9:-1]
    assert node.ask("/console/jobs?queue=gone").json == {"jobs": [], "cursor": "0"}
    wait_for_no_clients(node)


def test_jobs_in_other_states_are_found_among_many(open_node: OpenNode) -> None:
    node = open_node()
    with node.client() as client:
        client.pipeline([("ADDJOB", "crowd", "x", 0) for _ in range(5000)])
        ids = {client.call("ADDJOB", "rare", "x", 0).decode() for _ in range(5)}
        client.call("GETJOB", "COUNT", 3, "FROM", "rare")
    found: set[str] = set()
    cursor, calls = "0", 0
    while True:
        update = node.ask(f"/console/jobs?queue=rare&state=active&cursor={cursor}").json
        found |= {job["id"] for job in update["jobs"]}
        cursor = update["cursor"]
        calls += 1
        if cursor == "0" or calls > 50:
            break
    assert len(found) == 3
    assert found < ids
    assert len(node.ask("/console/jobs?queue=rare&state=queued").json["jobs"]) == 2
    assert node.ask("/console/jobs?queue=rare&state=acked").json["jobs"] == []


def test_long_body_is_truncated(open_node: OpenNode) -> None:
    node = open_node()
    body = b"\x00\xff" + b"ab" * 4_000_000
    for _ in range(10):
        node.call("ADDJOB", "long", body, 0)
    update = node.ask("/console/jobs?queue=long").json
    assert len(update["jobs"]) == 10
    for job in update["jobs"]:
        assert job["body_bytes"] == len(body)
        assert job["body"].startswith("\\x00\\xffabab")
        assert len(job["body"]) <= 4 * MAX_BODY_BYTES
        assert not job["is_text"]


@pytest.mark.parametrize("query", ["", "state=oldest", "queue=q&state=gone", "queue=q&state=Active"])
def test_invalid_jobs_query_is_refused(acting_node: ConsoleNode, query: str) -> None:
    reply = acting_node.ask(f"/console/jobs?{query}")
    assert reply.status == 400
    assert "oldest, youngest, active" in reply.text


def test_invalid_cursor_is_reported(acting_node: ConsoleNode) -> None:
    reply = acting_node.ask("/console/jobs?queue=q&state=active&cursor=COUNT")
    assert reply.status == 503
    assert reply.text.startswith("ERR ")


# --- actions ----------------------------------------------------------------------------------------------------------


def test_queue_is_paused_and_resumed(acting_node: ConsoleNode) -> None:
    node = acting_node
    assert node.state()["actions"] is True
    reply = node.act(action="pause", queue=key_of(HOSTILE), pause="in")
    assert (reply.status, reply.json) == (200, {"reply": "in"})
    assert node.call("PAUSE", HOSTILE, "state") == b"in"
    assert node.act(action="pause", queue=key_of(HOSTILE), pause="none").json == {"reply": "none"}
    assert node.call("PAUSE", HOSTILE, "state") == b"none"


def test_jobs_are_requeued_and_deleted(open_node: OpenNode) -> None:
    node = open_node("--http-actions", "yes")
    jobs = [node.call("ADDJOB", "q", "x", 0).decode() for _ in range(3)]
    node.call("GETJOB", "COUNT", 2, "FROM", "q")
    assert node.act(action="requeue", jobs=jobs).json == {"reply": 2}
    assert node.call("QLEN", "q") == 3
    assert node.act(action="delete", jobs=jobs[:2]).json == {"reply": 2}
    assert node.call("QLEN", "q") == 1
    refused = node.act(action="delete", jobs=["no ID"])
    assert (refused.status, refused.text) == (400, "BADID Invalid Job ID format.\n")


def test_redrive_is_told(open_node: OpenNode) -> None:
    node = open_node()
    assert node.ask("/console/redrive?queue=mail.dead").json == {"redrive": None}
    node.call("REDRIVE", "mail.dead", "RATE", 7)
    told = node.ask("/console/redrive?queue=mail.dead").json["redrive"]
    assert (told["state"], told["moved"], told["left"], told["failed"], told["rate"]) == ("running", 0, 0, 0, 7)
    assert node.ask("/console/redrive").status == 400


def test_actions_are_disabled_by_default(open_node: OpenNode) -> None:
    node = open_node()
    assert node.act(action="pause", queue="q", pause="in").status == 403
    assert node.call("CONFIG", "SET", "http-actions", "yes") == b"OK"
    assert node.act(action="pause", queue="q", pause="in").status == 200
    assert node.call("CONFIG", "GET", "http-actions") == [b"http-actions", b"yes"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"Content-Type": "text/plain"}, 403),
        ({**OWN, "Origin": "http://evil.example"}, 403),
        ({**OWN, "Sec-Fetch-Site": "cross-site"}, 403),
        ({**OWN, "Host": "rebound.example:9711"}, 403),
        ({**OWN, "Host": "localhost:9711", "Origin": "http://localhost:9711", "Sec-Fetch-Site": "same-origin"}, 200),
    ],
)
def test_other_sites_cannot_act(acting_node: ConsoleNode, headers: dict[str, str], status: int) -> None:
    action = {"action": "pause", "queue": "guarded", "pause": "all"}
    assert acting_node.ask("/console/act", action, headers).status == status
    assert acting_node.call("PAUSE", "guarded", "state") == (b"all" if status == 200 else b"none")
    acting_node.call("PAUSE", "guarded", "none")


def test_other_sites_cannot_read(acting_node: ConsoleNode) -> None:
    node = acting_node
    for target in ALL_PAGES:
        for headers in ({"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
            reply = node.ask(target, headers=headers)
            assert reply.status == 403
            assert "Access-Control-Allow-Origin" not in reply.headers


def test_dns_rebinding_is_refused(open_node: OpenNode) -> None:
    """A page of rebound.example can send requests to rebound.example, even if that name now points to the node."""
    node = open_node()
    rebound = {"Host": "rebound.example:9711", "Sec-Fetch-Site": "same-origin"}
    for target in ALL_PAGES:
        reply = node.ask(target, headers=rebound)
        assert reply.status == 403
        assert "requirepass" in reply.text
    assert node.ask("/", headers=rebound).status == 200, "the page explains the refusal"
    node.call("CONFIG", "SET", "requirepass", PASSWORD)
    assert node.ask("/console/jobs?queue=q", headers=rebound).status == 401
    assert node.ask("/console/jobs?queue=q", headers={**rebound, **BASIC}).status == 200


def test_bodies_are_limited_and_validated(acting_node: ConsoleNode) -> None:
    node = acting_node
    assert node.ask("/console/act", b"{", OWN).status == 400
    assert node.ask("/console/act", b" " * 4097, OWN).status == 413
    assert node.ask("/console/act", headers=OWN).status == 405
    assert node.ask("/console/jobs?queue=q", {"x": 1}).status == 413
    assert node.ask("/console/events", method="HEAD").status == 405


def test_action_replies_only_after_its_record_is_on_disk(open_node: OpenNode) -> None:
    """The durability barrier applies to the console as to every client."""
    node = open_node("--http-actions", "yes", "--appendonly", "yes", "--appendfsync", "always")
    jobs = [node.call("ADDJOB", "q", "x", 0).decode() for _ in range(2)]
    assert node.act(action="delete", jobs=jobs[:1]).json == {"reply": 1}
    assert node.act(action="pause", queue="q", pause="out").json == {"reply": "out"}
    node.server.process.kill()
    node.server.process.wait()
    assert b"DELJOB" in (node.server.directory / "disque.aof").read_bytes().upper()


# --- the password -----------------------------------------------------------------------------------------------------


NO_LOGIN: tuple[dict[str, str], ...] = ({}, {"Authorization": "Basic !"})


def test_password_is_required(open_node: OpenNode) -> None:
    node = open_node("--requirepass", PASSWORD, "--http-actions", "yes")
    wrong = {"Authorization": "Bearer wrong"}
    other = {"Authorization": "Basic " + b64encode(f"other:{PASSWORD}".encode()).decode()}
    for headers in (*NO_LOGIN, wrong, other):
        # Repeated failed logins would have to wait: tests/access/test_http.py.
        for target in ALL_PAGES if headers in NO_LOGIN else ALL_PAGES[:1]:
            reply = node.ask(target, headers=headers)
            assert (reply.status, reply.text) == (401, "user and password required\n")
            assert reply.headers["WWW-Authenticate"].startswith("Bearer")
        action = {"action": "pause", "queue": "q", "pause": "in"}
        assert node.ask("/console/act", action, {**OWN, **headers}).status == 401
    for headers in (BASIC, BEARER):
        assert node.ask("/console/jobs?queue=q", headers=headers).status == 200
        with node.events(headers=headers) as updates:
            assert next(updates)["queues"] == []
    assert node.ask("/console/act", action, {**OWN, **BASIC, "Host": "any.example"}).json == {"reply": "in"}


def test_live_page_ends_when_a_password_is_set(open_node: OpenNode) -> None:
    node = open_node()
    with node.events() as updates:
        next(updates)
        node.call("CONFIG", "SET", "requirepass", "secret")
        assert all("registered_jobs" in update["figures"] for update in updates), "and then the stream ends"
    assert node.ask("/console/events").status == 401


def test_former_password_is_accepted(open_node: OpenNode) -> None:
    node = open_node("--requirepass", "new", "--requirepass-former", PASSWORD)
    assert node.ask("/console/jobs?queue=q", headers=BASIC).status == 200
    assert node.ask("/console/jobs?queue=q", headers={"Authorization": "Bearer new"}).status == 200
    assert node.ask("/console/jobs?queue=q", headers={"Authorization": "Bearer "}).status == 401


def test_user_acts_with_its_own_rules_where_no_login_is_needed(open_node: OpenNode) -> None:
    node = open_node("--http-actions", "yes")
    node.call("ACL", "SETUSER", "ops", "on", f">{PASSWORD}", "~*", "+@inspect", "+@queueadmin")
    node.call("ACL", "SETUSER", "default", "-pause")
    action = {"action": "pause", "queue": "q", "pause": "in"}
    ops = {"Authorization": "Basic " + b64encode(f"ops:{PASSWORD}".encode()).decode()}
    assert "NOPERM" in node.ask("/console/act", action, OWN).text
    assert node.ask("/console/act", action, {**OWN, **ops}).json == {"reply": "in"}
    assert node.ask("/console/jobs?queue=q", headers=BEARER).status == 200


# --- side effects -----------------------------------------------------------------------------------------------------


def test_renamed_commands_are_used_and_removed_ones_reported(open_node: OpenNode) -> None:
    node = open_node(
        "--http-actions", "yes", "--rename-command", "QSTAT", "statistics", "--rename-command", "DELJOB", ""
    )  # fmt: skip
    job = node.call("ADDJOB", "q", "x", 0).decode()
    update = node.state("", lambda update: update["complete"])
    assert [queue["queue"] for queue in update["queues"]] == ["q"]
    refused = node.act(action="delete", jobs=[job])
    assert (refused.status, refused.text) == (400, "ERR unknown command 'deljob'\n")


def test_live_page_that_does_not_read_is_harmless(open_node: OpenNode) -> None:
    node = open_node()
    with node.client() as client:
        client.pipeline([("ADDJOB", f"{'q' * 200}{number}", "x", 0) for number in range(200)])
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect((LOOPBACK, node.http_port))
        deaf.sendall(b"GET /console/events?most=100 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert node.state("", lambda update: update["complete"])["queues"]
        assert node.call("PING") == b"PONG"
    wait_for_no_clients(node)


def test_node_shuts_down_while_pages_are_live(open_node: OpenNode) -> None:
    node = open_node()
    with node.events() as updates:
        next(updates)
        stopped = threading.Thread(target=node.server.stop)
        stopped.start()
        assert all("queues" in update for update in updates), "and the stream ends properly"
        stopped.join()
    assert node.server.process.returncode == 0
