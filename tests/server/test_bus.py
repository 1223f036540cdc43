"""The cluster bus of real processes: nodes that connect, fail and reconnect, and unknown clients of the bus port."""

from __future__ import annotations

import contextlib
import re
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from disqued.core.cluster.peer import BUS_PORT_DISTANCE
from disqued.testing.ports import free_port
from disqued.testing.processes import ServerProcess
from server.refusing import run_server
from support.cluster import RealCluster, RealNode

FRAME_HEADER = b"DbuZ" + (144).to_bytes(4, "big") + b"\0\1"
ID_BYTES = 40


@contextlib.contextmanager
def on_the_bus(node: RealNode | ServerProcess) -> Iterator[socket.socket]:
    """A connection to a node's bus port, as any program may open one."""
    with socket.create_connection(("127.0.0.1", node.port + BUS_PORT_DISTANCE), timeout=10) as unknown:
        yield unknown


def rest(unknown: socket.socket) -> bytes:
    """Everything that arrives until the node closes the connection."""
    received = b""
    try:
        while data := unknown.recv(65536):
            received += data
    except ConnectionResetError:
        pass
    return received


def answers(server: ServerProcess) -> bool:
    """Whether the server runs; its start is then completely logged."""
    with server.connect() as client:
        client.sendall(b"PING\r\n")
        return client.recv(100) == b"+PONG\r\n"


# --- finding each other -----------------------------------------------------------------------------------------------


def test_chained_meets_make_one_cluster(tmp_path: Path) -> None:
    with RealCluster(tmp_path, 3, meet=False) as cluster:
        cluster.meet(chain=True)
        views = [set(node.view()) for node in cluster.nodes]
        assert views == [{node.id for node in cluster.nodes}] * 3


def test_killed_node_is_flagged_and_rejoins_with_its_id(tmp_path: Path) -> None:
    with RealCluster(tmp_path, 3) as cluster:
        one, two, three = cluster.nodes
        lost = two.id
        two.kill()
        cluster.wait_until(lambda: all("fail" in node.view()[lost] for node in (one, three)), "two is flagged")
        two.restart()
        cluster.wait_whole()
        assert two.id == lost
        assert f"Node configuration loaded, I'm {lost}" in two.log


def test_hanging_node_is_flagged_until_it_continues(tmp_path: Path) -> None:
    with RealCluster(tmp_path, 3) as cluster:
        one, two, three = cluster.nodes
        hanging = three.id
        three.stop()
        cluster.wait_until(lambda: all("fail" in node.view()[hanging] for node in (one, two)), "three is flagged")
        three.cont()
        cluster.wait_whole()


def test_cluster_forms_again_after_all_nodes_were_shut_down(tmp_path: Path) -> None:
    with RealCluster(tmp_path, 3) as cluster:
        ids = {node.id for node in cluster.nodes}
        assert [node.end() for node in cluster.nodes] == [0, 0, 0]
        for node in cluster.nodes:
            node.start()
        for node in cluster.nodes:
            node.server.wait_ready()
        cluster.wait_whole()
        assert {node.id for node in cluster.nodes} == ids


def test_nodes_meet_over_ipv6(tmp_path: Path) -> None:
    with RealCluster(tmp_path, 2, "--bind", "127.0.0.1", "::1", meet=False) as cluster:
        one, two = cluster.nodes
        assert one.call("CLUSTER", "MEET", "::1", two.port) == b"OK"
        cluster.wait_whole()
        assert f" ::1:{two.port} " in one.call("CLUSTER", "NODES").decode()
        assert f" ::1:{one.port} " in two.call("CLUSTER", "NODES").decode()


def test_node_is_reached_at_its_announced_address(tmp_path: Path) -> None:
    with RealCluster(tmp_path, 2, meet=False) as cluster:
        bus_port = free_port()
        announcing = cluster.start_node(
            "--cluster-port", str(bus_port), "--cluster-announce-hostname", "localhost", "--cluster-announce-port", "7"
        )
        announcing.server.wait_ready()
        one, two = cluster.nodes[:2]
        assert announcing.call("CLUSTER", "MEET", "127.0.0.1", one.port) == b"OK"
        assert one.call("CLUSTER", "MEET", "127.0.0.1", two.port) == b"OK"
        cluster.wait_whole()
        assert " 127.0.0.1:7 " in two.call("CLUSTER", "NODES").decode()
        assert f"on the bus port {bus_port}\n" in announcing.log
        cluster.wait_until(
            lambda: [b"localhost", b"7"] in [node[1:3] for node in two.call("HELLO")[2:]], "two knows the name"
        )


def test_node_meets_its_seeds_at_start(tmp_path: Path) -> None:
    with RealCluster(tmp_path, 1) as cluster:
        (first,) = cluster.nodes
        for _ in range(2):
            cluster.start_node("--cluster-seeds", f"localhost:{first.port}").server.wait_ready()
        cluster.wait_whole()


def test_the_source_of_links_is_the_first_bind_address(tmp_path: Path) -> None:
    with RealCluster(tmp_path, 1, "--bind", "127.0.0.1", "127.0.0.2", meet=False) as cluster:
        (plain,) = cluster.nodes
        other = cluster.start_node("--bind", "127.0.0.2", "127.0.0.1")
        other.server.wait_ready()
        assert other.call("CLUSTER", "MEET", "127.0.0.1", plain.port) == b"OK"
        cluster.wait_whole()
        assert f" 127.0.0.2:{other.port} " in plain.call("CLUSTER", "NODES").decode()


# --- unknown senders
# --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "nonsense",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"DbuZ" + b"\0" * 140,
        b"DbuZ\xff\xff\xff\xff" + b"\0" * 200,
        FRAME_HEADER + b"\0\0\0\x07" + b"\0" * 130,
    ],
    ids=["http", "no length", "too long", "wrong length"],
)
def test_garbage_closes_only_its_own_connection_with_one_line(tmp_path: Path, nonsense: bytes) -> None:
    with RealCluster(tmp_path, 2) as cluster:
        one = cluster.nodes[0]
        with on_the_bus(one) as unknown:
            unknown.sendall(nonsense)
            assert rest(unknown) == b""
        assert one.sees(1)
        lines = [line for line in one.log.splitlines() if "Closing the bus link with 127.0.0.1:" in line]
        assert len(lines) == 1


def test_silent_bus_connection_is_closed(tmp_path: Path) -> None:
    with ServerProcess(tmp_path, "--cluster-node-timeout", "300", "--loglevel", "verbose") as server:
        server.wait_loaded()
        with on_the_bus(server) as silent, on_the_bus(server) as halting:
            halting.sendall(FRAME_HEADER)
            assert (rest(silent), rest(halting)) == (b"", b"")
        assert server.log.read_text().count("no node was admitted within cluster-node-timeout") == 2


def test_bus_connections_take_no_descriptors_from_clients(tmp_path: Path) -> None:
    launcher = ("setpriv", "--bounding-set", "-sys_resource", "prlimit", "--nofile=60:60")
    with ServerProcess(tmp_path, "--maxclients", "20", launcher=launcher) as server, contextlib.ExitStack() as opened:
        server.wait_loaded()
        unknown_senders = [opened.enter_context(on_the_bus(server)) for _ in range(50)]
        assert rest(unknown_senders[0]) == b""
        clients = [opened.enter_context(server.connect()) for _ in range(20)]
        for client in clients:
            client.sendall(b"PING\r\n")
        assert [client.recv(100) for client in clients] == [b"+PONG\r\n"] * 20
        assert server.log.read_text().count("Closing connections to the bus port that belong to no node: ") == 1


def test_connection_closed_at_once_has_no_effect(tmp_path: Path) -> None:
    with RealCluster(tmp_path, 2) as cluster:
        one = cluster.nodes[0]
        for _ in range(50):
            with on_the_bus(one) as unknown:
                unknown.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        assert one.call("PING") == b"PONG"
        assert one.sees(1)


# --- ports ------------------------------------------------------------------------------------------------------------


def test_a_bus_port_in_use_stops_the_start(tmp_path: Path) -> None:
    port = free_port()
    with socket.create_server(("127.0.0.1", port + BUS_PORT_DISTANCE)):
        outcome = run_server(tmp_path, "--port", str(port), "--bind", "127.0.0.1")
    assert outcome.status == 1
    assert outcome.out.endswith(
        f" # Can't listen on TCP port {port + BUS_PORT_DISTANCE} of 127.0.0.1 for the cluster bus: Address already in "
        "use (is another server running? Stop it, or choose another port).\n"
    )


def test_same_port_for_clients_and_bus_is_refused(tmp_path: Path) -> None:
    outcome = run_server(tmp_path, "--port", "7711", "--cluster-port", "7711")
    assert outcome.status == 1
    assert "Clients and the cluster bus cannot both use port 7711" in outcome.out


def test_a_node_without_a_client_port_is_reached_on_its_cluster_port(tmp_path: Path) -> None:
    bus_port = free_port()
    path = tmp_path / "s"
    arguments = ("--port", "0", "--unixsocket", str(path), "--bind", "127.0.0.1", "--cluster-port", str(bus_port))
    with ServerProcess(tmp_path, *arguments, at=str(path), bare=True) as server:
        assert answers(server)
        socket.create_connection(("127.0.0.1", bus_port), timeout=10).close()
        assert re.search(rf"reach this one on the bus port {bus_port}$", server.log.read_text(), re.MULTILINE)


def test_a_node_without_any_port_has_no_bus(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with ServerProcess(tmp_path, "--port", "0", "--unixsocket", str(path), at=str(path), bare=True) as server:
        assert answers(server)
        assert "bus port" not in server.log.read_text()


# --- a node that does not read ----------------------------------------------------------------------------------------


def test_backlog_for_a_hanging_node_is_bounded_and_the_node_catches_up(tmp_path: Path) -> None:
    limits = ("--cluster-link-sendbuf-limit", "4mb", "--maxmemory", "1gb")
    body = b"x" * 100_000
    with RealCluster(tmp_path, 2, *limits, node_timeout_ms=60_000) as cluster, contextlib.ExitStack() as opened:
        one, two = cluster.nodes
        clients = [opened.enter_context(contextlib.closing(one.connect())) for _ in range(200)]
        two.stop()
        for client in clients:  # each waits for a copy on the other node: 20 MB
            client.send("ADDJOB", "q", body, 0, "REPLICATE", 2)
        cluster.wait_until(lambda: "more than cluster-link-sendbuf-limit allows" in one.log, "the link is dropped")
        assert int(one.info("clients")["blocked_clients"]) > 0
        counted = one.info("busstats")
        assert int(counted["bus_links_overflowed"]) > 0
        assert int(counted["bus_lost_bytes"]) > 1 << 20
        two.cont()
        jobs = [client.read() for client in clients]
        cluster.wait_whole()
        assert [len(cluster.holders(job)) for job in (jobs[0], jobs[-1])] == [2, 2]
        assert int(two.info()["registered_jobs"]) == len(jobs)


def test_bytes_lost_with_a_killed_node_are_counted(tmp_path: Path) -> None:
    with RealCluster(tmp_path, 2, "--maxmemory", "1gb", node_timeout_ms=60_000) as cluster:
        one, two = cluster.nodes
        two.stop()
        with contextlib.closing(one.connect()) as client:
            client.pipeline([("ADDJOB", "q", b"x" * 100_000, 0, "ASYNC", "REPLICATE", 2)] * 120)
        two.kill()
        cluster.wait_until(lambda: int(one.info("busstats")["bus_lost_bytes"]) > 1 << 20, "the loss is counted")
        assert one.info("busstats")["bus_links_overflowed"] == "0"


def test_asynchronous_copies_wait_for_a_congested_link(tmp_path: Path) -> None:
    with RealCluster(
        tmp_path, 2, "--cluster-link-sendbuf-limit", "4mb", "--maxmemory", "1gb", node_timeout_ms=60_000
    ) as cluster:
        one, two = cluster.nodes
        two.stop()
        with contextlib.closing(one.connect()) as client:
            add = ("ADDJOB", "q", b"x" * 100_000, 0, "ASYNC", "REPLICATE", 2)
            for _ in range(200):
                client.send(*add)
            cluster.wait_until(lambda: one.info("clients")["blocked_clients"] == "1", "the client has to wait")
            assert "more than cluster-link-sendbuf-limit allows" not in one.log
            two.cont()
            jobs = [client.read() for _ in range(200)]
        cluster.wait_until(lambda: int(two.info()["registered_jobs"]) == len(jobs), "all copies are there")


# --- the end of a node ------------------------------------------------------------------------------------------------


def test_stopping_node_sends_its_last_messages(tmp_path: Path) -> None:
    with RealCluster(tmp_path, 2, "--maxmemory", "1gb") as cluster:
        one, two = cluster.nodes
        two.stop()  # nothing arrives while the jobs are added
        with contextlib.closing(one.connect()) as client:
            jobs = client.pipeline([("ADDJOB", "q", b"x" * 100_000, 0, "ASYNC", "REPLICATE", 2)] * 100)
        assert all(isinstance(job, bytes) for job in jobs)
        one.server.process.send_signal(signal.SIGTERM)
        two.cont()
        assert one.server.process.wait(10) == 0
        cluster.wait_until(lambda: int(two.info()["registered_jobs"]) == len(jobs), "all copies arrive")


def test_hanging_node_does_not_delay_the_shutdown_of_another(tmp_path: Path) -> None:
    with RealCluster(tmp_path, 2, "--maxmemory", "1gb") as cluster:
        one, two = cluster.nodes
        two.stop()
        with contextlib.closing(one.connect()) as client:
            client.pipeline([("ADDJOB", "q", b"x" * 100_000, 0, "ASYNC", "REPLICATE", 2)] * 100)
        assert one.end() == 0


def test_nodes_conf_is_readable_after_a_kill_during_a_save(tmp_path: Path) -> None:
    with RealCluster(tmp_path, 2) as cluster:
        one, two = cluster.nodes
        view = one.directory / "nodes.conf"
        cluster.wait_until(lambda: two.id in view.read_text(), "the view is saved")
        one.kill()
        view.write_text(view.read_text() + "\n" * 300)  # what is there between the write and the cut
        one.restart()
        cluster.wait_whole()
