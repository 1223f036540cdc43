"""`kubectl disque` with real nodes behind port forwards."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.cluster import RealCluster
from support.fake_kubectl import CLUSTERS, FakeKubernetes
from support.nodeclient import NodeClient
from support.plugin import PASSWORD, Plugin, cluster, pod, put, running, secret

pytestmark = pytest.mark.slow

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
    """Connections to the nodes by pod. Afterwards all jobs are removed."""
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


def test_cli_runs_disque_against_a_node(disque: Plugin) -> None:
    assert disque.ok("cli", "--pod", "orders-1", "orders", "addjob", "mail", "hello", "5000").startswith("D-")
    assert disque.ok("cli", "orders", "--", "--json", "getjob", "from", "mail").startswith('[["mail"')


def test_cli_returns_the_exit_status_of_disque(disque: Plugin) -> None:
    assert disque("cli", "orders", "nosuch").returncode == 1
    assert disque("cli", "orders", "--bogus").returncode == 2


def test_nodes_shows_what_each_node_reports(disque: Plugin) -> None:
    rows = disque.json("nodes", "orders")
    assert [(row["pod"], row["state"], row["links_up"], row["other_members"]) for row in rows] == [
        (name, "ok", 2, 2) for name in PODS
    ]
    assert all(len(row["node_id"]) == 40 and row["remarks"] == [] for row in rows)
    assert rows[0]["kubernetes_node"] == "node-of-orders-0"


def test_queues_are_summed_over_the_nodes(disque: Plugin, nodes: dict[str, NodeClient]) -> None:
    for name, queue in (("orders-0", "mail"), ("orders-0", "mail"), ("orders-2", "mail"), ("orders-1", "other")):
        add(nodes[name], queue)
    mail, other = disque.json("queues", "orders")
    assert (mail["queue"], mail["length"], mail["jobs_in"], mail["where"]) == (
        "mail", 3, 3, ["orders-0=2", "orders-2=1"],
    )  # fmt: skip
    assert (other["queue"], other["length"], other["where"]) == ("other", 1, ["orders-1=1"])
    assert [row["queue"] for row in disque.json("queues", "orders", "o*")] == ["other"]


def test_queues_names_the_pod_if_only_one_node_has_paused_a_queue(disque: Plugin, nodes: dict[str, NodeClient]) -> None:
    for name in PODS[:2]:
        add(nodes[name], "mail")
    nodes["orders-1"].call("PAUSE", "mail", "out")
    assert [row["pause"] for row in disque.json("queues", "orders")] == ["orders-1:out"]
    nodes["orders-1"].call("PAUSE", "mail", "none")


def test_jobs_shows_one_row_for_a_job_on_several_nodes(disque: Plugin, nodes: dict[str, NodeClient]) -> None:
    job = add(nodes["orders-1"], "mail", replicate=3)
    (row,) = disque.json("jobs", "orders")
    assert (row["id"], row["queue"], row["state"], row["copies"]) == (job, "mail", "queued", 3)
    assert row["where"] == ["orders-1=queued", "orders-0=active", "orders-2=active"]
    assert disque.json("jobs", "orders", "--state", "active") == []
    assert disque.json("jobs", "orders", "--queue", "other") == []


def test_jobs_stops_at_the_limit_and_says_so(disque: Plugin, nodes: dict[str, NodeClient]) -> None:
    for _ in range(3):
        add(nodes["orders-0"], "mail", replicate=2)
    done = disque("jobs", "orders", "--limit", "2")
    assert len(done.stdout.splitlines()) == 1 + 2
    assert done.stderr == "only the first 2 jobs were examined; use --limit 0 for all\n"


def test_unreachable_pods_are_reported_and_the_others_are_shown(
    disque: Plugin, kubernetes: FakeKubernetes, nodes: dict[str, NodeClient]
) -> None:
    kubernetes.add("pods", pod("orders-1", phase="Pending"))
    kubernetes.change(ports={name: port for name, port in kubernetes.state["ports"].items() if name != "orders-2"})
    add(nodes["orders-0"], "mail")
    done = disque("queues", "orders")
    assert (done.returncode, done.stdout.splitlines()[1].split("\t")[:2]) == (3, ["mail", "1"])
    first, second = done.stderr.splitlines()
    assert first == "warning: orders-1 is not included: pod is Pending"
    assert second.startswith(
        "warning: orders-2 is not included: error: unable to forward port because pod is not running"
    )
    lines = disque("nodes", "orders").stdout.splitlines()
    assert [line.split("\t")[2] for line in lines[1:]] == ["ok", "unreachable", "unreachable"]


def test_the_former_password_is_tried_too(disque: Plugin, kubernetes: FakeKubernetes) -> None:
    kubernetes.add("secret", secret(password="not known yet", **{"former-password": PASSWORD}))
    assert [row["state"] for row in disque.json("nodes", "orders")] == ["ok"] * 3
    kubernetes.add("secret", secret(password="wrong"))
    done = disque("nodes", "orders")
    assert (done.returncode, "NOAUTH" in done.stdout) == (3, True)


def test_nodes_remarks_on_a_member_without_a_pod(
    disque: Plugin, brokers: RealCluster, kubernetes: FakeKubernetes
) -> None:
    put(kubernetes, cluster(replicas=2, status=running()))
    kubernetes.change(objects={**kubernetes.state["objects"], "pods": {name: pod(name) for name in PODS[:2]}})
    (first, _) = disque.json("nodes", "orders")
    third = brokers.nodes[2]
    assert len(first["remarks"]) == 1
    assert first["remarks"][0].endswith(f":{third.port}: no pod has this ID")


def test_report_has_everything_but_passwords_and_job_bodies(
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
    for directive in ("requirepass ", "requirepass-former "):
        assert directive not in texts["nodes/orders-2/config.txt"], "no node is asked for a password"
    whole = "\n".join(texts.values())
    for private in (PASSWORD, "abracadabra", "in-a-file", "a private letter"):
        assert private not in whole
    assert "(redacted) was typed at the wrong place" in texts["logs/orders-0.log"]


def test_report_is_written_without_nodes_and_lists_what_is_missing(
    disque: Plugin, kubernetes: FakeKubernetes, tmp_path: Path
) -> None:
    kubernetes.change(ports={}, forbidden=["secret"])
    path = tmp_path / "report.tar.gz"
    done = disque("report", "orders", "--file", str(path))
    assert done.returncode == 0
    assert "warning: not included: password: " in done.stderr
    assert CLUSTERS in str(kubernetes.calls())
