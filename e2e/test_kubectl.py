"""`kubectl disque` on a real Kubernetes: its output is correct, and its changes are complete when it returns."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path
from typing import IO

import pytest

from e2e.support.cluster import DisqueCluster
from e2e.support.plugin import Plugin

pytestmark = pytest.mark.skipif(not shutil.which("kubectl"), reason="kubectl is not installed")


@pytest.fixture
def disque(cluster: DisqueCluster) -> Plugin:
    return Plugin(cluster.namespace)


def test_output_matches_the_operator_and_the_nodes(cluster: DisqueCluster, disque: Plugin, tmp_path: Path) -> None:
    cluster.create(replicas=3)
    cluster.wait_running(3)
    ids, pods = cluster.ids(), cluster.pod_names()

    [line] = disque.json("status")
    assert (line["name"], line["phase"], line["ready"]) == ("shop", "Running", 3)
    shown = disque.json("status", "shop")["status"]
    assert {member["pod"]: member["nodeId"] for member in shown["members"]} == ids
    rows = disque.json("nodes", "shop")
    assert {row["pod"]: row["node_id"] for row in rows} == ids
    assert [(row["state"], row["links_up"], row["remarks"]) for row in rows] == [("ok", 2, [])] * 3
    assert disque.ok("password", "shop") == f"{cluster.password}\n"

    job = disque.ok("cli", "--pod", "shop-1", "shop", "addjob", "mail", "a private letter", "5000").strip()
    [queue] = disque.json("queues", "shop")
    assert (queue["queue"], queue["length"], queue["where"]) == ("mail", 1, ["shop-1=1"])
    [row] = disque.json("jobs", "shop")
    assert (row["id"], row["state"], row["copies"]) == (job, "queued", 3)

    assert {line.split("]")[0].removeprefix("[") for line in disque.ok("logs", "shop").splitlines()} == set(pods)
    path = tmp_path / "report.tar.gz"
    disque.ok("report", "shop", "--file", str(path))
    with tarfile.open(path) as tar:
        files = {name.partition("/")[2]: tar.extractfile(name) for name in tar.getnames()}
        texts = {name: file.read().decode() for name, file in files.items() if file}
    assert {f"{folder}/{pod}{end}" for pod in pods for folder, end in (("logs", ".log"), ("nodes", "/info.txt"))} <= {
        *texts
    }
    assert {"children/statefulset-shop.json", "children/secret-shop-auth.json", "events.txt"} <= texts.keys()
    whole = "\n".join(texts.values())
    assert cluster.password is not None
    assert cluster.password not in whole
    assert "a private letter" not in whole


@pytest.mark.long
def test_changes_are_complete_when_the_command_returns(cluster: DisqueCluster, disque: Plugin) -> None:
    cluster.create(replicas=2)
    cluster.wait_running(2)
    assert disque.ok("scale", "shop", "3") == "shop scaled to 3 nodes\n"
    assert len(cluster.pod_names()) == 3
    with cluster.broker(2) as broker:
        broker.call("ADDJOB", "mail", "body", 0, "REPLICATE", 1, "RETRY", 0)

    assert "shop-2 is drained and safe to stop" in disque.ok("drain", "shop", "shop-2")
    with cluster.broker(2) as broker:
        assert broker.jobs() == 0
        assert disque.ok("drain", "shop", "shop-2", "--undo") == "shop-2 accepts jobs again\n"
        assert broker.call("CLUSTER", "LEAVING", "status")[1] == b"no"

    uids = {cluster.uid(ordinal) for ordinal in range(3)}
    assert disque.ok("restart", "shop") == "shop restarted\n"
    assert not uids & {cluster.uid(ordinal) for ordinal in range(3)}

    assert disque.ok("pause", "shop").startswith("shop paused")
    assert disque.ok("resume", "shop") == "shop resumed\n"
    assert disque.ok("hibernate", "shop").startswith("shop hibernated")
    assert cluster.pods() == []
    assert disque.ok("wake", "shop") == "shop is running again\n"
    with cluster.brokers() as brokers:
        assert sum(broker.jobs() for broker in brokers) == 1


def test_scale_and_drain_are_refused_if_jobs_need_all_nodes(cluster: DisqueCluster, disque: Plugin) -> None:
    cluster.create(replicas=2)
    cluster.wait_running(2)
    with cluster.broker(0) as broker:
        broker.call("ADDJOB", "mail", "body", 5000, "REPLICATE", 2)
    for words in (("scale", "shop", "1"), ("drain", "shop", "shop-1")):
        done = disque(*words)
        assert (done.returncode, "REPLICATE 2" in done.stderr) == (1, True), done
        disque.ok("scale", "shop", "2")
    annotations = cluster.kube.get("Pod", "shop-1", cluster.namespace)["metadata"].get("annotations", {})
    assert "disque.dev/drain" not in annotations, "a refused drain must not start later"
    cluster.wait_running(2)


def test_logs_follow_a_restart(cluster: DisqueCluster, disque: Plugin) -> None:
    cluster.create(replicas=1)
    cluster.wait_running(1)
    with disque.started("logs", "shop", "--follow") as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("[shop-0] ")
        uid = cluster.uid(0)
        cluster.kube.delete("Pod", "shop-0", cluster.namespace)
        cluster.wait_replaced(0, uid)
        lines = until(process.stdout, "ready to exit") + until(process.stdout, "ready to accept connections")
    assert len(set(lines)) == len(lines)


def until(output: IO[str], words: str) -> list[str]:
    """Read lines up to the first that contains these words."""
    lines: list[str] = []
    for line in output:
        lines.append(line)
        if words in line:
            return lines
    raise AssertionError(f"no line contains {words!r}: {lines}")
