"""`disque console`: the address of a node's page, opened in the browser on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.running import Disque
from disqued.cli.exits import Exit
from disqued.testing.ports import free_port
from disqued.testing.processes import ServerProcess
from support.cluster import RealCluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RealCluster, list[int]]]:
    ports = [free_port(), free_port()]
    with RealCluster(tmp_path_factory.mktemp("cluster"), 2, meet=False) as nodes:
        for node, port in zip(nodes.nodes, ports, strict=True):
            node.kill()
            node.arguments += ["--http-port", str(port)]
            node.restart()
        nodes.meet()
        nodes.wait_whole()
        yield nodes, ports


def browser_that_notes(directory: Path) -> tuple[str, Path]:
    """A command for BROWSER, and the file in which it notes what it is to open."""
    noted = directory / "opened"
    script = directory / "browser"
    script.write_text(f'#!/bin/sh\necho "$1" > {noted}\n')
    script.chmod(0o755)
    return f"{script} %s", noted


def test_on_a_terminal_the_page_is_opened(cluster: tuple[RealCluster, list[int]], tmp_path: Path) -> None:
    nodes, ports = cluster
    browser, noted = browser_that_notes(tmp_path)
    address = f"http://127.0.0.1:{ports[0]}/\n"
    done = Disque(nodes.nodes[0].port).on_terminal()("console", BROWSER=browser)
    assert (done.returncode, done.stdout.decode(), done.stderr) == (0, address, b"")
    assert noted.read_text() == address


@pytest.mark.parametrize("terminal", [True, False])
def test_otherwise_its_address_is_printed(
    cluster: tuple[RealCluster, list[int]], tmp_path: Path, terminal: bool
) -> None:
    nodes, ports = cluster
    browser, noted = browser_that_notes(tmp_path)
    disque = Disque(nodes.nodes[0].port, terminal)
    done = disque("console", *(["--print"] if terminal else []), BROWSER=browser)
    assert done.stdout.decode() == f"http://127.0.0.1:{ports[0]}/\n"
    assert not noted.exists()


def test_another_member_is_chosen_by_its_address_or_id(cluster: tuple[RealCluster, list[int]]) -> None:
    nodes, ports = cluster
    one, two = nodes.nodes
    two_id = two.call("CLUSTER", "MYID").decode()
    for wanted in (two_id, two_id[:8], two.address):
        assert Disque(one.port).ok("console", "--node", wanted) == f"http://127.0.0.1:{ports[1]}/\n"


@pytest.mark.parametrize(("wanted", "why"), [("nobody", "No member is"), ("", "2 members are")])
def test_who_is_not_one_member_is_told(cluster: tuple[RealCluster, list[int]], wanted: str, why: str) -> None:
    done = Disque(cluster[0].nodes[0].port)("console", "--node", wanted)
    assert done.returncode == Exit.REFUSED
    assert done.stderr.decode() == f"{why} meant by '{wanted}': 'disque nodes' lists them\n"


def test_without_a_browser_that_is_told(cluster: tuple[RealCluster, list[int]]) -> None:
    done = Disque(cluster[0].nodes[0].port).on_terminal()("console", BROWSER="/no/such/browser", PATH="", DISPLAY="")
    assert done.returncode == 0
    assert done.stderr.startswith(b"There is no browser here")


def test_a_node_without_an_http_port_is_told(server: ServerProcess) -> None:
    done = Disque(server.port)("console")
    assert done.returncode == Exit.REFUSED
    assert done.stderr.startswith(b"The node 127.0.0.1:%d has no console: give it an http-port" % server.port)
