"""The cluster bus with TLS: nodes verify each other's authority and names, and nobody else gets in."""

from __future__ import annotations

import shutil
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from compat.replay import Client
from compat.wire import Status
from disqued.testing.certificates import Authority
from disqued.testing.ports import free_port
from disqued.testing.processes import ServerProcess, form_cluster, is_complete
from server.refusing import run_server
from tls.nodes import trusting

FAST = ("--cluster-node-timeout", "2000")
TLS = ("--tls-cluster", "yes", "--tls-cert-file", "node.crt", "--tls-key-file", "node.key", "--tls-ca-cert-file")
Start = Callable[..., ServerProcess]


@pytest.fixture
def member(tmp_path: Path, authority: Authority) -> Iterator[Start]:
    """A function that starts a node whose bus uses TLS; in the directory of a former one, with its files."""
    with ExitStack() as stack:

        def start(
            *arguments: str, name: str, port: int | None = None, by: Authority = authority, certificate: str = "node"
        ) -> ServerProcess:
            directory = tmp_path / name
            directory.mkdir(exist_ok=True)
            for suffix in ("crt", "key"):
                shutil.copy(by.directory / f"{certificate}.{suffix}", directory / f"node.{suffix}")
            shutil.copy(authority.certificate, directory / "ca.crt")
            return stack.enter_context(
                ServerProcess(directory, *TLS, "ca.crt", *FAST, *arguments, port=port or free_port())
            )

        yield start


@pytest.fixture
def three(member: Start) -> Sequence[ServerProcess]:
    """A cluster of three nodes."""
    nodes = [member(name=name) for name in ("n1", "n2", "n3")]
    form_cluster(nodes)
    return nodes


def connected(node: ServerProcess) -> socket.socket:
    """A connection to the bus port, which a node opens after the one for clients."""
    node.wait_until(lambda: "on the bus port" in node.output, "its bus port is open")
    return socket.create_connection(("127.0.0.1", node.port + 10000), timeout=30)


def dial(node: ServerProcess, context: ssl.SSLContext) -> ssl.SSLSocket:
    """A connection with TLS to the bus port."""
    raw = connected(node)
    try:
        return context.wrap_socket(raw, server_hostname="localhost")
    except BaseException:
        raw.close()
        raise


def refuses_bus(node: ServerProcess, context: ssl.SSLContext) -> bool:
    """Whether the bus port ends a connection with these settings although it is quiet, at once."""
    try:
        with dial(node, context) as connection:
            connection.settimeout(1)
            return connection.recv(1) == b""
    except TimeoutError:
        return False
    except (ssl.SSLError, ConnectionError):
        return True


def members(node: ServerProcess) -> int:
    """How many nodes a node knows, itself included."""
    lines = node.ask("CLUSTER INFO").splitlines()
    return int(next(line for line in lines if line.startswith("cluster_known_nodes:")).split(":")[1])


def test_cluster_of_three_replicates(three: Sequence[ServerProcess]) -> None:
    first, second, third = three
    job = first.ask("ADDJOB mail hello 5000 REPLICATE 3")
    assert job.startswith("D-")
    client = Client(third)
    assert client.call(b"GETJOB", b"FROM", b"mail") == [[b"mail", job.encode(), b"hello"]]
    assert client.finish() == b""
    assert second.ask(f"ACKJOB {job}") == "1"


def test_large_jobs_pass(three: Sequence[ServerProcess]) -> None:
    client = Client(three[0])
    body = bytes(range(256)) * 40_000
    assert isinstance(client.call(b"ADDJOB", b"mail", body, b"20000", b"REPLICATE", b"3"), Status)
    assert client.finish() == b""
    taker = Client(three[2])
    taken = taker.call(b"GETJOB", b"FROM", b"mail")
    assert isinstance(taken, list)
    assert isinstance(taken[0], list)
    assert taken[0][2] == body
    assert taker.finish() == b""


def test_only_certificates_of_the_authority_open_a_bus_connection(
    three: Sequence[ServerProcess], authority: Authority, tmp_path: Path
) -> None:
    other = Authority(tmp_path, "other-ca")
    other.issue("node")
    foreign = trusting(authority)
    foreign.load_cert_chain(tmp_path / "node.crt", tmp_path / "node.key")
    assert not refuses_bus(three[0], trusting(authority, "node"))
    assert refuses_bus(three[0], trusting(authority))
    assert refuses_bus(three[0], foreign)
    three[0].wait_until(
        lambda: "is refused, the TLS handshake failed: " in three[0].output, "the failed handshakes are logged"
    )


def test_tls_of_clients_does_not_decide_about_nodes(member: Start, authority: Authority) -> None:
    node = member("--tls-port", str(free_port()), "--tls-auth-clients", "no", name="n1")
    assert refuses_bus(node, trusting(authority))


def test_node_with_a_certificate_of_another_authority_is_refused(member: Start, tmp_path: Path) -> None:
    other = Authority(tmp_path, "other-ca")
    other.issue("node")
    first, foreign = member(name="n1"), member(name="n2", by=other)
    assert first.ask(f"CLUSTER MEET 127.0.0.1 {foreign.port}") == "OK"
    assert foreign.ask(f"CLUSTER MEET 127.0.0.1 {first.port}") == "OK"
    first.wait_until(lambda: "the TLS handshake failed: certificate verify failed" in first.output, "it is refused")
    first.wait_until(lambda: members(first) == 1, "the handshake is given up")
    assert "certificates that are signed by an authority in tls-ca-cert-file" in first.output


@pytest.mark.slow
@pytest.mark.parametrize("secret", [False, True])
def test_node_with_a_certificate_for_another_name_is_refused_by_both_sides(
    member: Start, authority: Authority, tmp_path: Path, secret: bool
) -> None:
    authority.issue("elsewhere", names="DNS:elsewhere.example.com,IP:192.0.2.1")
    path = tmp_path / "secret"
    path.write_text("a secret that all nodes know")
    path.chmod(0o600)
    common = ("--cluster-secret-file", str(path)) if secret else ()
    first, second = member(*common, name="n1"), member(*common, name="n2")
    foreign = member(*common, name="n3", certificate="elsewhere")
    form_cluster([first, second])
    assert first.ask(f"CLUSTER MEET 127.0.0.1 {foreign.port}") == "OK"
    assert foreign.ask(f"CLUSTER MEET 127.0.0.1 {second.port}") == "OK"
    reason = "its certificate is for elsewhere.example.com, 192.0.2.1, not for 127.0.0.1: issue one with that"
    first.wait_until(lambda: reason in first.output and reason in second.output, "the certificate is refused")
    first.wait_until(lambda: members(first) == 2, "the handshake is given up")
    assert members(second) == 2
    assert first.ask("ADDJOB mail hello 5000 REPLICATE 2").startswith("D-")


@pytest.mark.slow
def test_certificates_with_names_alone_serve_nodes_that_meet_by_seeds(member: Start, authority: Authority) -> None:
    authority.issue("named", names="DNS:localhost")
    ports = [free_port(), free_port()]
    seeds = ("--cluster-seeds", *(f"localhost:{port}" for port in ports))
    announce = ("--cluster-announce-hostname", "localhost")
    first, second = (member(*announce, *seeds, name=f"n{port}", port=port, certificate="named") for port in ports)
    second.wait_until(lambda: is_complete([first, second]), "the nodes find each other")
    first.kill()
    second.wait_until(lambda: "fail" in second.ask("CLUSTER NODES"), "the node fails")
    back = member(*announce, *seeds, name=f"n{ports[0]}", port=ports[0], certificate="named")
    back.wait_until(lambda: is_complete([back, second]), "the node is back")


@pytest.mark.slow
def test_killed_node_reconnects_when_it_is_back(three: Sequence[ServerProcess], member: Start) -> None:
    first, second, third = three
    third.kill()
    first.wait_until(lambda: "fail" in first.ask("CLUSTER NODES"), "the node fails")
    assert first.ask("ADDJOB mail hello 5000 REPLICATE 2").startswith("D-")
    back = member(name="n3", port=third.port)
    back.wait_until(lambda: is_complete([first, second, back]), "the node is back")
    assert back.ask("ADDJOB mail again 5000 REPLICATE 3").startswith("D-")


def test_new_links_use_a_renewed_certificate_and_the_others_continue(
    three: Sequence[ServerProcess], authority: Authority, member: Start
) -> None:
    first = three[0]

    def serial() -> object:
        with dial(first, trusting(authority, "client")) as connection:
            certificate = connection.getpeercert()
            assert certificate is not None
            return certificate["serialNumber"]

    before = serial()
    for suffix in ("key", "crt"):
        shutil.copy(authority.directory / f"other.{suffix}", first.directory / f"new.{suffix}")
        (first.directory / f"new.{suffix}").replace(first.directory / f"node.{suffix}")
    first.wait_until(lambda: serial() != before, "new connections get the new certificate")
    assert is_complete(three)
    three[1].kill()
    back = member(name="n2", port=three[1].port)
    back.wait_until(lambda: is_complete([first, back, three[2]]), "new links use the new certificate")
    assert first.ask("ADDJOB mail hello 5000 REPLICATE 3").startswith("D-")


@pytest.mark.slow
def test_node_without_tls_cannot_join_and_nothing_hangs(three: Sequence[ServerProcess], tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    with ServerProcess(tmp_path / "plain", *FAST) as plain:
        assert plain.ask(f"CLUSTER MEET 127.0.0.1 {three[0].port}") == "OK"
        assert three[1].ask(f"CLUSTER MEET 127.0.0.1 {plain.port}") == "OK"
        refused = [three[0], three[1]]
        plain.wait_until(lambda: all("the TLS handshake failed" in node.output for node in refused), "TLS is refused")
        plain.wait_until(lambda: (members(plain), members(three[1])) == (1, 3), "the handshakes are given up")
        assert plain.ask("ADDJOB mail hello 1000").startswith("D-")
    assert is_complete(three)
    assert three[1].ask("ADDJOB mail hello 5000 REPLICATE 3").startswith("D-")


@pytest.fixture
def mixed(tmp_path: Path, authority: Authority) -> Iterator[Callable[[str, str], ServerProcess]]:
    """A function that starts a node with a value of `tls-cluster`; again on the same port, with its files."""
    ports: dict[str, int] = {}
    running: dict[str, ServerProcess] = {}
    with ExitStack() as stack:

        def start(name: str, tls_cluster: str) -> ServerProcess:
            directory = tmp_path / name
            directory.mkdir(exist_ok=True)
            if name in running:
                running[name].kill()
            for suffix in ("crt", "key"):
                shutil.copy(authority.directory / f"node.{suffix}", directory / f"node.{suffix}")
            shutil.copy(authority.certificate, directory / "ca.crt")
            port = ports.setdefault(name, free_port())
            words = (*TLS, "ca.crt", "--tls-cluster", tls_cluster, *FAST)
            running[name] = stack.enter_context(ServerProcess(directory, *words, port=port))
            return running[name]

        yield start


@pytest.mark.parametrize("order", [("no", "optional", "yes"), ("yes", "optional", "no")])
def test_running_cluster_is_switched_in_two_steps_and_stays_whole(
    mixed: Callable[[str, str], ServerProcess], order: tuple[str, str, str]
) -> None:
    """After every restart of a node all nodes are connected: each node reaches those before and after a step."""
    nodes = {name: mixed(name, order[0]) for name in ("n1", "n2", "n3")}
    form_cluster(list(nodes.values()))
    for value in order[1:]:
        for name in ("n1", "n2", "n3"):
            node = nodes[name] = mixed(name, value)
            node.wait_until(lambda: is_complete(list(nodes.values())), f"{name} with {value} is a member")
            assert node.ask("ADDJOB mail hello 5000 REPLICATE 3").startswith("D-")


@pytest.mark.slow
def test_optional_tls_is_used_where_both_nodes_have_it(
    mixed: Callable[[str, str], ServerProcess], authority: Authority
) -> None:
    """Then a third one can require it, whichever of the two opened the connection."""
    first, second = mixed("n1", "optional"), mixed("n2", "optional")
    form_cluster([first, second])
    assert not refuses_bus(first, trusting(authority, "node"))
    assert refuses_bus(first, trusting(authority))
    third = mixed("n3", "yes")
    assert third.ask(f"CLUSTER MEET 127.0.0.1 {first.port}") == "OK"
    third.wait_until(lambda: is_complete([first, second, third]), "all are connected")


def test_silent_connection_to_a_port_with_optional_tls_ends(mixed: Callable[[str, str], ServerProcess]) -> None:
    node = mixed("n1", "optional")
    with connected(node) as connection:
        assert connection.recv(1) == b""


@pytest.mark.slow
def test_silent_connections_end_and_keep_no_node_out(member: Start) -> None:
    first, second = member(name="n1"), member(name="n2")
    with ExitStack() as stack:
        silent = [stack.enter_context(connected(first)) for _ in range(50)]
        form_cluster([first, second])
        assert [connection.recv(1) for connection in silent] == [b""] * 50


def test_secret_is_required_inside_of_tls(member: Start, tmp_path: Path) -> None:
    secrets = [tmp_path / "secret", tmp_path / "other-secret"]
    for path in secrets:
        path.write_text(path.name * 4)
        path.chmod(0o600)
    good = ("--cluster-secret-file", str(secrets[0]))
    first, second = member(*good, name="n1"), member(*good, name="n2")
    form_cluster([first, second])
    assert first.ask("ADDJOB mail hello 5000 REPLICATE 2").startswith("D-")
    wrong = member("--cluster-secret-file", str(secrets[1]), name="n3")
    assert first.ask(f"CLUSTER MEET 127.0.0.1 {wrong.port}") == "OK"
    first.wait_until(lambda: "it has another cluster secret" in first.output, "it is refused")
    first.wait_until(lambda: members(first) == 2, "the handshake is given up")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((), "tls-cluster needs a certificate: set tls-cert-file and tls-key-file"),
        (
            ("--tls-cert-file", "node.crt", "--tls-key-file", "node.key"),
            "tls-cluster needs tls-ca-cert-file to verify the certificates of other nodes: set it",
        ),
    ],
)
def test_bad_directives_are_refused(
    tmp_path: Path, authority: Authority, arguments: tuple[str, ...], reason: str
) -> None:
    for suffix in ("crt", "key"):
        shutil.copy(authority.directory / f"node.{suffix}", tmp_path)
    outcome = run_server(tmp_path, "--port", str(free_port()), "--tls-cluster", "yes", *arguments)
    assert outcome.status == 1
    assert f"Can't use TLS: {reason}" in outcome.out
