"""`disque-server --nodes N`: real processes behind one port."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from disqued.client import Backoff, Client, DisqueError, tls_context
from disqued.config import Config, load
from disqued.server.fatal import Fatal
from disqued.server.severalnodes import LocalNode, SeveralNodes, plan
from disqued.testing.certificates import Authority
from disqued.testing.local import no_include
from disqued.testing.ports import LOOPBACK, free_port
from disqued.testing.processes import ServerProcess, sees_all, wait_until
from server.refusing import run_server

NODES = 3


class Several(ServerProcess):
    """The process that runs the nodes, and ways to ask each node."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        port = free_port(behind=NODES)
        first = ("--nodes", str(NODES), "--port", str(port), "--bind", LOOPBACK, "--http-port", "0")
        super().__init__(directory, *first, *arguments, port=port, bare=True)

    def ask_node(self, number: int, *words: str) -> str:
        """The reply of one node, reached by its own port."""
        with Client([f"{LOOPBACK}:{self.port + number}"], discover=False, backoff=Backoff(attempts=1)) as client:
            reply = client.execute(*words)
        assert isinstance(reply, bytes)
        return reply.decode()

    def ask_all(self, *words: str) -> list[str]:
        """The reply of each node."""
        return [self.ask_node(number, *words) for number in range(1, NODES + 1)]

    def pid_of(self, number: int) -> int:
        """The process ID of a node."""
        return int(field(self.ask_node(number, "INFO", "server"), "process_id"))

    def pids(self) -> list[int]:
        """The process IDs of all nodes."""
        return [self.pid_of(number) for number in range(1, NODES + 1)]

    def wait_complete(self) -> None:
        """Wait until all nodes form one cluster."""
        wait_until(self._is_complete, "the nodes form a cluster", lambda: self.output)

    def _is_complete(self) -> bool:
        try:
            return all(sees_all(nodes, NODES) for nodes in self.ask_all("CLUSTER", "NODES"))
        except DisqueError:
            return False


def field(info: str, name: str) -> str:
    """The value of a field of INFO."""
    return info.partition(f"{name}:")[2].split()[0]


@pytest.fixture
def several(tmp_path: Path) -> Iterator[Several]:
    with Several(tmp_path, "--appendonly", "yes", "--cluster-node-timeout", "1000") as nodes:
        nodes.wait_complete()
        yield nodes


def is_running(pid: int) -> bool:
    """Whether a process exists; a child of this one that nobody waited for does not count."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_nodes_form_one_cluster_behind_one_port(several: Several) -> None:
    with Client([f"{LOOPBACK}:{several.port}"]) as client:
        seen = client.hello()
        job = client.add("mail", "hello", replicate=NODES)
    assert {node.id for node in seen.nodes} == set(several.ask_all("CLUSTER", "MYID"))
    assert {node.port for node in seen.nodes} == {several.port + number for number in range(1, NODES + 1)}
    for number in range(1, NODES + 1):
        with Client([f"{LOOPBACK}:{several.port + number}"], discover=False) as client:
            assert client.show(job) is not None
        assert (several.directory / f"node-{number}" / "nodes.conf").exists()
        assert f"node-{number} " in several.output
    pids = several.pids()
    assert several.stop() == 0, several.output
    assert not any(map(is_running, pids))


def test_clients_of_the_shared_port_are_distributed_and_stay_with_their_node(several: Several) -> None:
    reached: set[str] = set()
    while len(reached) < NODES:
        reached.add(several.ask("CLUSTER MYID"))
    with Client([f"{LOOPBACK}:{several.port}"]) as client:
        client.add_many("mail", [str(number) for number in range(50)], replicate=1, retry_s=300)
        handled: list[bytes] = []
        with client.consumer("mail", lambda job: handled.append(job.body), prefetch=8, working_after_s=0):
            wait_until(
                lambda: all(field(jobs, "registered_jobs") == "0" for jobs in several.ask_all("INFO", "jobs")),
                "all jobs are acknowledged",
                lambda: several.output,
            )
    assert sorted(map(int, handled)) == list(range(50))


def test_node_that_dies_is_started_again_with_its_jobs(several: Several) -> None:
    with Client([f"{LOOPBACK}:{several.port + 2}"], discover=False) as client:
        job = client.add("mail", "hello", replicate=1)
        node_id, pid = several.ask_node(2, "CLUSTER", "MYID"), several.pid_of(2)
        os.kill(pid, signal.SIGKILL)
        several.wait_until(
            lambda: "node-2 was killed by SIGKILL, starting it again" in several.output, "the end is logged"
        )
        several.wait_complete()
        assert client.show(job) is not None
    assert several.ask_node(2, "CLUSTER", "MYID") == node_id
    assert several.pid_of(2) != pid


def test_node_that_was_shut_down_stays_down_and_the_others_serve(several: Several) -> None:
    pid = several.pid_of(1)
    with Client([f"{LOOPBACK}:{several.port + 1}"], discover=False) as client, pytest.raises(DisqueError):
        client.execute("SHUTDOWN")
    several.wait_until(lambda: not is_running(pid), "the node ended")
    assert several.ask("PING") == "PONG"
    assert several.stop() == 0, several.output
    assert several.output.count("node-1") == several.output.count(f"node-1 {pid}:"), "one process"


@pytest.fixture
def _children_are_waited_for_by_the_loop() -> Iterator[None]:
    """As asyncio does it by default from Python 3.12 on, instead of in a thread."""
    if sys.version_info >= (3, 12):
        yield
        return
    before = asyncio.get_child_watcher()
    asyncio.set_child_watcher(asyncio.PidfdChildWatcher())
    yield
    asyncio.set_child_watcher(before)


@pytest.mark.usefixtures("_children_are_waited_for_by_the_loop")
def test_status_of_a_node_that_ended_just_before_all_are_stopped_is_not_lost() -> None:
    async def stop_when_the_node_ended() -> int:
        several = SeveralNodes((sys.executable, "-c", "input()"), b"\n", [LocalNode("node-1", ())])
        running = asyncio.create_task(several.run())
        while not several._running:  # noqa: ASYNC110 - nothing tells it
            await asyncio.sleep(0)
        os.waitid(os.P_PID, several._running["node-1"].pid, os.WEXITED | os.WNOWAIT)  # noqa: ASYNC222 - the loop must not know
        several._stop()
        return await running

    assert asyncio.run(stop_when_the_node_ended()) == 0


def test_nodes_stop_when_their_parent_is_killed(several: Several) -> None:
    pids = several.pids()
    several.kill()
    wait_until(lambda: not any(map(is_running, pids)), "the nodes ended", lambda: several.output)


def test_all_nodes_stop_when_one_cannot_start(tmp_path: Path) -> None:
    port = free_port(behind=NODES)
    with socket.create_server((LOOPBACK, port + 2)):
        done = run_server(tmp_path, "--nodes", str(NODES), "--port", str(port), "--bind", LOOPBACK, "--http-port", "0")
    assert done.status == 1
    assert f"Can't listen on TCP port {port + 2}" in done.out
    assert "node-2 cannot start: stopping the other nodes" in done.out


def test_clients_with_tls_are_distributed_and_learn_the_ports_of_the_nodes(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    authority.issue("node")
    shared = free_port(behind=NODES)
    files = ("--tls-cert-file", "node.crt", "--tls-key-file", "node.key", "--tls-ca-cert-file", "ca.crt")
    with Several(
        tmp_path, "--tls-port", str(shared), "--tls-auth-clients", "no", *files, "--tls-cluster", "yes"
    ) as nodes:
        nodes.wait_complete()
        reached: set[str] = set()
        while len(reached) < NODES:
            url = f"disques://{LOOPBACK}:{shared}"
            with Client([url], discover=False, tls=tls_context(cafile=str(authority.certificate))) as client:
                reached.add(client.hello().node_id)
                wait_until(
                    lambda: {node.port for node in client.hello().nodes} == set(range(shared + 1, shared + NODES + 1)),
                    "the node knows the ports of all nodes",
                    lambda: nodes.output,
                )
        assert reached == set(nodes.ask_all("CLUSTER", "MYID"))
        assert nodes.stop() == 0, nodes.output


def configured(*lines: str) -> Config:
    return load("\n".join(lines), (), no_include)


def test_each_node_has_its_share_of_the_memory_and_ports_of_its_own() -> None:
    one, two = plan(configured("port 7711", "maxmemory 70%", "http-port 9711", "cluster-seeds far:7711"), 2)
    assert (one.name, two.name) == ("node-1", "node-2")
    expected = {
        "--dir": "node-2",
        "--port": "7713",
        "--shared-port": "7711",
        "--http-port": "9713",
        "--maxmemory": "35%",
        "--cluster-seeds": "127.0.0.1:7712 far:7711",
    }
    for option, value in expected.items():
        at = two.directives.index(option) + 1
        assert " ".join(two.directives[at : at + len(value.split())]) == value


def option(words: tuple[str, ...], name: str) -> str:
    return words[words.index(name) + 1]


def test_each_node_has_a_port_for_tls_of_its_own() -> None:
    _, two = plan(configured("port 7711", "tls-port 7721"), 2)
    assert option(two.directives, "--port") == "7713"
    assert option(two.directives, "--tls-port") == "7723"
    assert option(two.directives, "--shared-tls-port") == "7721"
    assert two.directives[-1] == "127.0.0.1:7712", "the seed"


def test_nodes_can_serve_tls_only() -> None:
    _, two = plan(configured("port 0", "tls-port 7711"), 2)
    assert option(two.directives, "--port") == "0"
    assert option(two.directives, "--shared-port") == "0"
    assert option(two.directives, "--tls-port") == "7713"
    assert option(two.directives, "--shared-tls-port") == "7711"
    assert two.directives[-1] == "127.0.0.1:7712", "the seed"


@pytest.mark.parametrize(
    ("lines", "seed"),
    [
        (["bind 10.0.0.1"], "10.0.0.1:7713"),
        (["bind 0.0.0.0"], "127.0.0.1:7713"),
        (["bind ::1"], "[::1]:7713"),
        (["bind 0.0.0.0", "cluster-announce-ip 10.0.0.2"], "10.0.0.2:7713"),
    ],
)
def test_nodes_meet_at_an_address_that_other_machines_can_use(lines: list[str], seed: str) -> None:
    one, _ = plan(configured("port 7711", *lines), 2)
    assert one.directives[-1] == seed


@pytest.mark.parametrize(
    ("count", "lines", "complaint"),
    [
        (1, [], "--nodes needs a number from 2 to 64"),
        (0, [], "--nodes needs a number from 2 to 64"),
        (65, [], "--nodes needs a number from 2 to 64"),
        (2, ["port 0", "unixsocket /tmp/s"], "--nodes needs a port from 1 to 55533"),
        (2, ["port 55534"], "--nodes needs a port from 1 to 55533"),
        (2, ["port 0", "tls-port 55534"], "--nodes needs a port from 1 to 55533"),
        (2, ["port 7711", "tls-port 65534"], "--nodes needs a tls-port from 1 to 65533"),
        (2, ["port 7711", "tls-port 7713"], "--nodes needs a port and a tls-port that differ by more than 2"),
        (2, ["port 7711", "tls-port 7709"], "--nodes needs a port and a tls-port that differ by more than 2"),
        (2, ["shared-tls-port 7000"], "cannot be combined with shared-tls-port"),
        (2, ["unixsocket /tmp/s"], "cannot be combined with unixsocket"),
        (2, ["cluster-port 7000"], "cannot be combined with cluster-port"),
        (2, ["cluster-announce-port 7000"], "cannot be combined with cluster-announce-port"),
        (2, ["daemonize yes"], "cannot be combined with daemonize"),
        (2, ["logfile /var/log/disque.log"], "needs a relative path for logfile"),
        (2, ["cluster-config-file /etc/nodes.conf"], "needs a relative path for cluster-config-file"),
    ],
)
def test_what_several_nodes_cannot_share_is_refused(count: int, lines: list[str], complaint: str) -> None:
    with pytest.raises(Fatal, match=complaint):
        plan(configured(*lines), count)


def test_files_that_all_nodes_read_are_found_from_the_directories_of_the_nodes(tmp_path: Path) -> None:
    config = Config()
    config.dir = str(tmp_path)
    config.requirepass_file = "password"
    config.tls_cert_file = "/etc/disque/tls.crt"
    for node in plan(config, 2):
        words = list(node.directives)
        assert words[words.index("--requirepass-file") + 1] == str(tmp_path / "password")
        assert words[words.index("--tls-cert-file") + 1] == "/etc/disque/tls.crt"
        assert "--cluster-secret-file" not in words
