"""`disque console`: prints the address of the console, and opens it on a terminal."""

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
    """A command for BROWSER, and the file to which it writes the address."""
    noted = directory / "opened"
    script = directory / "browser"
    script.write_text(f'#!/bin/sh\necho "$1" > {noted}\n')
    script.chmod(0o755)
    return f"{script} %s", noted


def test_console_is_opened_on_a_terminal(cluster: tuple[RealCluster, list[int]], tmp_path: Path) -> None:
    nodes, ports = cluster
    browser, noted = browser_that_notes(tmp_path)
    address = f"http://127.0.0.1:{ports[0]}/\n"
    done = Disque(nodes.nodes[0].port).on_terminal()("console", BROWSER=browser)
    assert (done.returncode, done.stdout.decode(), done.stderr) == (0, address, b"")
    assert noted.read_text() == address


@pytest.mark.parametrize("terminal", [True, False])
def test_address_is_printed_in_a_pipe(cluster: tuple[RealCluster, list[int]], tmp_path: Path, terminal: bool) -> None:
    nodes, ports = cluster
    browser, noted = browser_that_notes(tmp_path)
    disque = Disque(nodes.nodes[0].port, terminal)
    done = disque("console", *(["--print"] if terminal else []), BROWSER=browser)
    assert done.stdout.decode() == f"http://127.0.0.1:{ports[0]}/\n"
    assert not noted.exists()


def test_another_node_is_selected_by_address_or_id(cluster: tuple[RealCluster, list[int]]) -> None:
    nodes, ports = cluster
    one, two = nodes.nodes
    two_id = two.call("CLUSTER", "MYID").decode()
    for wanted in (two_id, two_id[:8], two.address):
        assert Disque(one.port).ok("console", "--node", wanted) == f"http://127.0.0.1:{ports[1]}/\n"


@pytest.mark.parametrize(("wanted", "why"), [("nobody", "No node matches"), ("", "2 nodes match")])
def test_ambiguous_or_unknown_node_is_an_error(cluster: tuple[RealCluster, list[int]], wanted: str, why: str) -> None:
    done = Disque(cluster[0].nodes[0].port)("console", "--node", wanted)
    assert done.returncode == Exit.REFUSED
    assert done.stderr.decode() == f"{why} '{wanted}'; see 'disque nodes'\n"


def test_missing_browser_is_reported(cluster: tuple[RealCluster, list[int]]) -> None:
    done = Disque(cluster[0].nodes[0].port).on_terminal()("console", BROWSER="/no/such/browser", PATH="", DISPLAY="")
    assert done.returncode == 0
    assert done.stderr.startswith(b"No browser found")


def test_node_without_http_port_is_an_error(server: ServerProcess) -> None:
    done = Disque(server.port)("console")
    assert done.returncode == Exit.REFUSED
    assert done.stderr.startswith(b"node 127.0.0.1:%d has no console; set http-port" % server.port)
