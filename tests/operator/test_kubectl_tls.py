"""`kubectl disque` with TLS and a user: it expects the certificate of the pod behind the port forward."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from disqued.testing.certificates import Authority
from disqued.testing.ports import free_port
from support.fake_kubectl import FakeKubernetes
from support.plugin import PASSWORD, Plugin, cluster, put, running, secret
from tls.nodes import TlsNode

pytestmark = pytest.mark.slow

HOST = "orders-0.orders-members.shop.svc"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    made = Authority(tmp_path_factory.mktemp("authority"))
    made.issue("node", names=f"DNS:{HOST}")
    made.issue("client")
    return made


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[TlsNode]:
    """A node that requires a certificate and a password."""
    directory = tmp_path_factory.mktemp("node")
    for name in ("node.crt", "node.key", "ca.crt"):
        shutil.copy(authority.directory / name, directory)
    with TlsNode(directory, authority, free_port(), "--requirepass", PASSWORD, clients="yes") as started:
        yield started


@pytest.fixture
def kubernetes(node: TlsNode, tmp_path: Path) -> FakeKubernetes:
    fake = FakeKubernetes(tmp_path)
    put(fake, cluster(replicas=1, status=running(replicas=1)))
    fake.add("secret", secret())
    fake.change(ports={"orders-0": node.tls_port})
    return fake


@pytest.fixture
def disque(kubernetes: FakeKubernetes) -> Plugin:
    return Plugin(kubernetes)


@pytest.fixture
def login(authority: Authority) -> tuple[str, ...]:
    """The options that the node requires."""
    pair = ("--cert", str(authority.directory / "client.crt"), "--key", str(authority.directory / "client.key"))
    return ("--tls", "--user", "default", "--cacert", str(authority.certificate), *pair)


def test_nodes_are_queried_with_tls_under_the_name_of_their_pod(disque: Plugin, login: tuple[str, ...]) -> None:
    assert [row["state"] for row in disque.json("nodes", *login, "orders")] == ["ok"]
    disque.ok("cli", *login, "orders", "addjob", "mail", "hello", "5000")
    assert [row["queue"] for row in disque.json("queues", "orders", *login)] == ["mail"]
    assert [row["queue"] for row in disque.json("jobs", "orders", *login)] == ["mail"]
    assert disque.ok("cli", *login, "orders", "queues").splitlines()[1].startswith("mail\t")


def encrypted(kubernetes: FakeKubernetes, ca: str) -> None:
    """Make the cluster one with TLS by its spec, as the operator does."""
    body = cluster(replicas=1, status=running(replicas=1))
    put(kubernetes, body | {"spec": body["spec"] | {"tls": {"enabled": True}}})
    port = {"name": "client-tls", "containerPort": 7712}
    pod = kubernetes.get("pods", "orders-0")
    pod["spec"]["containers"] = [{"name": "broker", "ports": [port]}]
    kubernetes.add("pods", pod)
    kubernetes.add("configmap", {"metadata": {"name": "orders-ca"}, "data": {"ca.crt": ca}})


def test_tls_of_the_spec_needs_only_the_certificate_of_the_client(
    disque: Plugin, kubernetes: FakeKubernetes, authority: Authority
) -> None:
    encrypted(kubernetes, authority.certificate.read_text())
    pair = {
        "DISQUE_CERT": str(authority.directory / "client.crt"),
        "DISQUE_KEY": str(authority.directory / "client.key"),
        "DISQUE_TLS": "yes",
    }
    assert disque("cli", "orders", "ping", **pair).stdout == "PONG\n"
    assert disque("nodes", "orders", **pair).returncode == 0
    forwards = [words for words in kubernetes.calls() if "port-forward" in words]
    assert all(":7712" in words for words in forwards)


def test_published_authority_is_the_one_that_is_trusted(
    disque: Plugin, kubernetes: FakeKubernetes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    encrypted(kubernetes, Authority(tmp_path_factory.mktemp("other")).certificate.read_text())
    done = disque("nodes", "orders")
    assert done.returncode == 3
    assert "certificate verify failed" in done.stdout


def test_report_has_the_replies_of_nodes_with_tls(disque: Plugin, login: tuple[str, ...], tmp_path: Path) -> None:
    done = disque("report", "orders", *login, "--file", str(tmp_path / "report.tar.gz"))
    assert (done.returncode, "nodes/orders-0" in done.stderr) == (0, False)


def test_environment_is_that_of_disque(disque: Plugin, authority: Authority) -> None:
    variables = {
        "DISQUE_TLS": "yes",
        "DISQUE_CACERT": str(authority.certificate),
        "DISQUE_CERT": str(authority.directory / "client.crt"),
        "DISQUE_KEY": str(authority.directory / "client.key"),
        "DISQUE_USER": "default",
    }
    assert disque("nodes", "orders", **variables).returncode == 0
    assert disque("cli", "orders", "ping", **variables).stdout == "PONG\n"


def test_certificate_of_another_pod_is_refused(
    disque: Plugin, kubernetes: FakeKubernetes, node: TlsNode, login: tuple[str, ...]
) -> None:
    put(kubernetes, cluster(replicas=2, status=running()))
    kubernetes.change(ports={"orders-0": node.tls_port, "orders-1": node.tls_port})
    done = disque("queues", "orders", *login)
    assert done.returncode == 3
    assert done.stderr.startswith("warning: orders-1 is not included: no reply (cannot connect to any node")
    assert "orders-1.orders-members.shop.svc" in done.stderr
    refused = disque("cli", "--pod", "orders-1", *login, "orders", "ping")
    assert (refused.returncode, refused.stdout) == (3, "")
    assert disque.ok("cli", "--pod", "orders-1", *login, "--insecure", "orders", "ping") == "PONG\n"


def test_file_that_cannot_be_used_is_refused(disque: Plugin) -> None:
    done = disque("nodes", "orders", "--tls", "--cacert", "/nowhere/ca.crt")
    assert done.returncode == 1
    assert done.stderr.startswith("cannot use the files of --cacert, --cert and --key: ")


def test_user_needs_a_password_of_their_own(disque: Plugin, login: tuple[str, ...]) -> None:
    """The Secret has the password of the default user only."""
    done = disque("nodes", "orders", *login, "--user", "ann")
    assert (done.returncode, done.stderr) == (1, "the password of user ann is missing; set it in DISQUE_PASSWORD\n")
    wrong = disque("nodes", "orders", *login, "--user", "ann", DISQUE_PASSWORD=PASSWORD)
    assert wrong.returncode == 3
