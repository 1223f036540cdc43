"""`kubectl disque` with nodes: real brokers behind forwards, as pods are."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.cluster import RealCluster
from support.fake_kubectl import CLUSTERS, FakeKubernetes
from support.nodeclient import NodeClient
from support.plugin import PASSWORD, Plugin, cluster, pod, put, running, secret

PODS = ("orders-0", "orders-1", "orders-2")


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    with RealCluster(tmp_path_factory.mktemp("brokers"), 3) as three:
        for node in three.nodes:
            node.call("CONFIG", "SET", "requirepass", PASSWORD)
        yield three


@pytest.fixture
def kubernetes(brokers: RealCluster, tmp_path: Path) -> FakeKubernetes:
    fake = FakeKubernetes(tmp_path)
    put(fake, cluster(status=running()))
    fake.add("secret", secret())
    fake.change(ports={name: node.port for name, node in zip(PODS, brokers.nodes, strict=True)})
    return fake


@pytest.fixture
def disque(kubernetes: FakeKubernetes) -> Plugin:
    return Plugin(kubernetes)


@pytest.fixture(autouse=True)
def nodes(brokers: RealCluster) -> Iterator[dict[str, NodeClient]]:
    """Connections to the nodes by pod; their jobs go with them."""
    clients = {name: node.connect() for name, node in zip(PODS, brokers.nodes, strict=True)}
    for client in clients.values():
        client.call("AUTH", PASSWORD)
    yield clients
    for client in clients.values():
        client.call("DEBUG", "FLUSHALL")
        client.close()


def add(client: NodeClient, queue: str, replicate: int = 1) -> str:
    job: bytes = client.call("ADDJOB", queue, "hello", 5000, "REPLICATE", replicate)
    return job.decode()


def test_the_command_line_reaches_a_node(disque: Plugin) -> None:
    assert disque.ok("cli", "--pod", "orders-1", "orders", "addjob", "mail", "hello", "5000").startswith("D-")
    assert disque.ok("cli", "orders", "--", "--json", "getjob", "from", "mail").startswith('[["mail"')


def test_the_exit_status_of_the_command_line_is_kept(disque: Plugin) -> None:
    assert disque("cli", "orders", "nosuch").returncode == 1
    assert disque("cli", "orders", "--bogus").returncode == 2


def test_nodes_are_asked_themselves(disque: Plugin) -> None:
    rows = disque.json("nodes", "orders")
    assert [(row["pod"], row["state"], row["links_up"], row["other_members"]) for row in rows] == [
        (name, "ok", 2, 2) for name in PODS
    ]
    assert all(len(row["node_id"]) == 40 and row["remarks"] == [] for row in rows)
    assert rows[0]["machine"] == "machine-of-orders-0"


def test_queues_are_added_up_over_the_nodes(disque: Plugin, nodes: dict[str, NodeClient]) -> None:
    for name, queue in (("orders-0", "mail"), ("orders-0", "mail"), ("orders-2", "mail"), ("orders-1", "other")):
        add(nodes[name], queue)
    mail, other = disque.json("queues", "orders")
    assert (mail["queue"], mail["length"], mail["jobs_in"], mail["where"]) == (
        "mail", 3, 3, ["orders-0=2", "orders-2=1"],
    )  # fmt: skip
    assert (other["queue"], other["length"], other["where"]) == ("other", 1, ["orders-1=1"])
    assert [row["queue"] for row in disque.json("queues", "orders", "o*")] == ["other"]


def test_a_pause_of_one_node_names_its_pod(disque: Plugin, nodes: dict[str, NodeClient]) -> None:
    for name in PODS[:2]:
        add(nodes[name], "mail")
    nodes["orders-1"].call("PAUSE", "mail", "out")
    assert [row["pause"] for row in disque.json("queues", "orders")] == ["orders-1:out"]
    nodes["orders-1"].call("PAUSE", "mail", "none")


def test_a_job_is_one_row_with_all_nodes_that_have_it(disque: Plugin, nodes: dict[str, NodeClient]) -> None:
    job = add(nodes["orders-1"], "mail", replicate=3)
    (row,) = disque.json("jobs", "orders")
    assert (row["id"], row["queue"], row["state"], row["copies"]) == (job, "mail", "queued", 3)
    assert row["where"] == ["orders-1=queued", "orders-0=active", "orders-2=active"]
    assert disque.json("jobs", "orders", "--state", "active") == []
    assert disque.json("jobs", "orders", "--queue", "other") == []


def test_only_so_many_jobs_are_looked_at(disque: Plugin, nodes: dict[str, NodeClient]) -> None:
    for _ in range(3):
        add(nodes["orders-0"], "mail", replicate=2)
    done = disque("jobs", "orders", "--limit", "2")
    assert len(done.stdout.splitlines()) == 1 + 2
    assert done.stderr == "Only 2 jobs were looked at; --limit 0 looks at all.\n"


def test_a_pod_that_can_not_be_asked_is_told_and_the_others_are_shown(
    disque: Plugin, kubernetes: FakeKubernetes, nodes: dict[str, NodeClient]
) -> None:
    kubernetes.add("pods", pod("orders-1", phase="Pending"))
    kubernetes.change(ports={name: port for name, port in kubernetes.state["ports"].items() if name != "orders-2"})
    add(nodes["orders-0"], "mail")
    done = disque("queues", "orders")
    assert (done.returncode, done.stdout.splitlines()[1].split("\t")[:2]) == (3, ["mail", "1"])
    assert done.stderr.splitlines() == [
        "orders-1 is not in this: its pod is Pending",
        "orders-2 is not in this: error: unable to forward port because pod is not running. Current status=Pending",
    ]
    lines = disque("nodes", "orders").stdout.splitlines()
    assert [line.split("\t")[2] for line in lines[1:]] == ["ok", "silent", "silent"]


def test_a_former_password_and_none_are_tried_too(disque: Plugin, kubernetes: FakeKubernetes) -> None:
    kubernetes.add("secret", secret(password="not known yet", **{"former-password": PASSWORD}))
    assert [row["state"] for row in disque.json("nodes", "orders")] == ["ok"] * 3
    kubernetes.add("secret", secret(password="wrong"))
    done = disque("nodes", "orders")
    assert (done.returncode, "NOAUTH" in done.stdout) == (3, True)


def test_nodes_that_are_apart_or_unknown_are_remarked_on(
    disque: Plugin, brokers: RealCluster, kubernetes: FakeKubernetes
) -> None:
    put(kubernetes, cluster(replicas=2, status=running()))
    kubernetes.change(objects={**kubernetes.state["objects"], "pods": {name: pod(name) for name in PODS[:2]}})
    (first, _) = disque.json("nodes", "orders")
    third = brokers.nodes[2]
    assert len(first["remarks"]) == 1
    assert first["remarks"][0].endswith(f":{third.port}, which is in no pod")


def test_a_report_has_everything_but_passwords_and_bodies(
    disque: Plugin, kubernetes: FakeKubernetes, nodes: dict[str, NodeClient], tmp_path: Path
) -> None:
    nodes["orders-0"].call("ADDJOB", "mail", "a private letter", 5000, "REPLICATE", 1)
    broken = pod("orders-1")
    broken["spec"]["containers"][0]["env"] = [{"name": "MAIL_TOKEN", "value": "abracadabra"}]
    kubernetes.add("pod", broken)
    kubernetes.add("pods", broken)
    labels = {"disque.dev/cluster": "orders"}
    config = {"kind": "ConfigMap", "metadata": {"name": "orders-config", "labels": labels}}
    kubernetes.add("configmap", config | {"data": {"disque.conf": "port 7711\nrequirepass in-a-file\n"}})
    kubernetes.change(logs={"orders-0": [f"2026-01-01T00:00:01.000000000Z {PASSWORD} was typed at the wrong place"]})
    path = tmp_path / "report.tar.gz"
    done = disque("report", "orders", "--file", str(path))
    assert (done.returncode, done.stdout) == (0, f"{path}\n")
    with tarfile.open(path) as tar:
        files = {name.partition("/")[2]: tar.extractfile(name) for name in tar.getnames()}
        texts = {name: file.read().decode() for name, file in files.items() if file}
    assert {"cluster.json", "children/configmap-orders-config.json", "logs/orders-0.log"} <= texts.keys()
    assert {f"nodes/{name}/{file}" for name in PODS for file in ("info.txt", "cluster-nodes.txt")} <= texts.keys()
    assert "disqued_version:" in texts["nodes/orders-2/info.txt"]
    assert "maxmemory " in texts["nodes/orders-2/config.txt"]
    whole = "\n".join(texts.values())
    for private in (PASSWORD, "abracadabra", "in-a-file", "a private letter"):
        assert private not in whole
    assert "(redacted) was typed at the wrong place" in texts["logs/orders-0.log"]


def test_a_report_is_made_without_nodes_and_says_what_is_missing(
    disque: Plugin, kubernetes: FakeKubernetes, tmp_path: Path
) -> None:
    kubernetes.change(ports={}, forbidden=["secret"])
    path = tmp_path / "report.tar.gz"
    done = disque("report", "orders", "--file", str(path))
    assert done.returncode == 0
    assert "Not in it: the password: " in done.stderr
    assert CLUSTERS in str(kubernetes.calls())
