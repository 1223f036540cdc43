"""`kubectl disque` against a fake API server, without nodes: status output, changes, waiting and exit statuses."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from disque_operator.kubectl.commands.queues import merged
from disqued.client import QueueStats
from support.fake_kubectl import CLUSTERS, FakeKubernetes, Json
from support.plugin import PASSWORD, Plugin, cluster, condition, pod, put, running, secret, steps

ORDERS = f"{CLUSTERS}/orders"
DRAINED = condition(
    "Draining", "True", "Drained", "orders-1 is drained, as requested by its annotation disque.dev/drain"
)


@pytest.fixture
def kubernetes(tmp_path: Path) -> FakeKubernetes:
    fake = FakeKubernetes(tmp_path)
    put(fake, cluster(status=running()))
    fake.add("secret", secret())
    return fake


@pytest.fixture
def disque(kubernetes: FakeKubernetes) -> Plugin:
    return Plugin(kubernetes)


def test_status_without_a_name_lists_all_clusters(disque: Plugin, kubernetes: FakeKubernetes) -> None:
    put(kubernetes, cluster("mail", 1))
    lines = [line.split("\t") for line in disque.ok("status").splitlines()]
    assert lines[0] == ["name", "phase", "replicas", "ready", "jobs", "queued", "version", "age_s", "message"]
    assert [line[:7] for line in lines[1:]] == [
        ["orders", "Running", "3", "3", "30", "3", "0.1.0"],
        ["mail", "", "1", "", "", "", ""],
    ]


def test_status_of_all_namespaces_includes_the_namespace(disque: Plugin) -> None:
    assert [row["namespace"] for row in disque.json("status", "-A")] == ["shop"]


def test_status_shows_conditions_and_members(disque: Plugin) -> None:
    text = disque.ok("status", "orders")
    title, conditions, members = text.split("\n\n")
    assert title == "Running: all 3 members are ready and connected"
    assert conditions.splitlines()[1].startswith("Ready\tTrue\tAllMembersConnected\t")
    assert [line.split("\t")[0] for line in members.splitlines()] == ["pod", "orders-0", "orders-1", "orders-2"]


def test_status_shows_where_clients_outside_reach_the_members(disque: Plugin, kubernetes: FakeKubernetes) -> None:
    addresses = [{"pod": f"orders-{ordinal}", "address": f"192.0.2.{ordinal}:31000"} for ordinal in range(2)]
    put(kubernetes, cluster(status=running() | {"exposure": {"addresses": addresses}}))
    *_, outside = disque.ok("status", "orders").split("\n\n")
    assert outside == "pod\taddress\norders-0\t192.0.2.0:31000\norders-1\t192.0.2.1:31000\n"


def test_users_of_the_cluster_are_listed(disque: Plugin, kubernetes: FakeKubernetes) -> None:
    for name, cluster_name in (("mail", "orders"), ("other", "another")):
        spec = {"clusterRef": {"name": cluster_name}, "queues": ["mail:*"], "allow": ["@producer", "info"]}
        state = {"userName": name, "secretName": "mine", "conditions": [condition("Ready", "True", "Applied", "all")]}
        user = {"metadata": {"name": name, "namespace": "shop"}, "spec": spec, "status": state}
        kubernetes.add("disqueusers.disque.dev", user)
    lines = [line.split("\t") for line in disque.ok("users", "orders").splitlines()]
    assert lines == [
        ["user", "ready", "queues", "allow", "secret", "reason", "message"],
        ["mail", "True", "mail:*", "@producer info", "mine", "Applied", "all"],
    ]


def test_status_as_json_is_unchanged(disque: Plugin) -> None:
    shown = disque.json("status", "orders")
    assert shown == {"namespace": "shop", "name": "orders", "generation": 1, "status": running()}


def test_status_exits_with_1_if_the_named_cluster_is_not_ready(disque: Plugin, kubernetes: FakeKubernetes) -> None:
    put(kubernetes, cluster(generation=2, status=running()))
    assert disque("status", "orders").returncode == 1
    assert disque("status").returncode == 0


def test_status_shows_the_progress_of_a_drain(disque: Plugin, kubernetes: FakeKubernetes) -> None:
    drain = {"pod": "orders-2", "jobsLeft": 1234, "rate": 560, "secondsLeft": 2, "secondsElapsed": 12, "waitsFor": ""}
    put(kubernetes, cluster(status=running() | {"phase": "Draining", "drain": drain}))
    first = disque("status", "orders").stdout.splitlines()[0]
    assert first == "Draining orders-2: 1,234 jobs left, 560 jobs/s, about 2s remaining, 12s elapsed"


def test_status_shows_replicas_of_ordered_queues_that_a_drain_still_moves(
    disque: Plugin, kubernetes: FakeKubernetes
) -> None:
    drain = {"pod": "orders-2", "jobsLeft": 0, "orderedReplicasLeft": 3, "secondsLeft": 0, "secondsElapsed": 12}
    put(kubernetes, cluster(status=running() | {"phase": "Draining", "drain": drain}))
    first = disque("status", "orders").stdout.splitlines()[0]
    assert first == "Draining orders-2: 0 jobs left, 3 replicas of ordered queues left, 12s elapsed"


def test_status_shows_ordered_queues_without_a_leader(disque: Plugin, kubernetes: FakeKubernetes) -> None:
    why = "these ordered queues have no leader: payments"
    state = running() | {"conditions": [*running()["conditions"], condition("OrderedReady", "False", "NoLeader", why)]}
    put(kubernetes, cluster(status=state))
    shown = [line.split("\t") for line in disque.ok("status", "orders").splitlines()]
    [row] = [line for line in shown if line[0] == "OrderedReady"]
    assert (row[1], row[2], row[-1]) == ("False", "NoLeader", why)


def test_watch_prints_each_change_once(disque: Plugin, kubernetes: FakeKubernetes) -> None:
    steps(kubernetes, {}, {}, {ORDERS: {"status": {"phase": "Growing", "message": "adding pods"}}})
    with disque.started("status", "orders", "--watch") as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(2)]
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130
    assert lines == ["Running: all 3 members are ready and connected\n", "Growing: adding pods\n"]


@pytest.mark.parametrize(
    ("command", "field", "value", "message"),
    [
        ("pause", "paused", True, "pausing orders\n"),
        ("resume", "paused", False, "resuming orders\n"),
        ("hibernate", "hibernate", True, "hibernating orders\n"),
        ("wake", "hibernate", False, "waking orders\n"),
    ],
)
def test_switch_commands_change_the_spec(
    disque: Plugin, kubernetes: FakeKubernetes, command: str, field: str, value: bool, message: str
) -> None:
    assert disque.ok(command, "orders", "--no-wait") == message
    assert kubernetes.get(CLUSTERS, "orders")["spec"][field] is value


def test_hibernate_waits_until_all_nodes_have_stopped(disque: Plugin, kubernetes: FakeKubernetes) -> None:
    steps(
        kubernetes,
        {ORDERS: {"status": {"phase": "Hibernating", "message": "stopping all members"}}},
        {ORDERS: {"status": {"phase": "Hibernated", "observedGeneration": 2}}},
    )
    done = disque("hibernate", "orders")
    assert (done.returncode, done.stdout) == (0, "orders hibernated; its volumes keep its jobs\n")
    assert done.stderr == "Hibernating: stopping all members\n"


@pytest.mark.parametrize(("command", "phase"), [("pause", "Paused"), ("hibernate", "Hibernated")])
def test_switch_command_waits_until_the_operator_has_observed_the_change(
    disque: Plugin, kubernetes: FakeKubernetes, command: str, phase: str
) -> None:
    put(kubernetes, cluster(status=running() | {"phase": phase}))  # just resumed or woken: the status is out of date
    steps(kubernetes, {}, {ORDERS: {"status": {"observedGeneration": 2}}})
    disque.ok(command, "orders")
    assert kubernetes.state["pending_changes"] == []


def test_scale_shows_the_drain_and_retries_while_the_api_server_is_down(
    disque: Plugin, kubernetes: FakeKubernetes
) -> None:
    drain = {
        "pod": "orders-2",
        "jobsLeft": 7,
        "rate": 0,
        "secondsLeft": -1,
        "secondsElapsed": 1,
        "waitsFor": "orders-1 is full",
    }
    steps(
        kubernetes,
        {ORDERS: {"status": {"phase": "Draining", "drain": drain}}},
        {ORDERS: {"status": running(replicas=2, generation=2) | {"drain": None}}},
    )
    with disque.started("scale", "orders", "2") as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "Draining orders-2: 7 jobs left, 1s elapsed, stalled: orders-1 is full\n"
        kubernetes.change(failing_requests=1)
        output, errors = process.communicate(timeout=30)
    assert (process.returncode, output) == (0, "orders scaled to 2 nodes\n")
    assert errors.startswith("Kubernetes API unreachable, retrying: The connection to the server")
    assert kubernetes.get(CLUSTERS, "orders")["spec"]["replicas"] == 2


@pytest.mark.parametrize(
    ("reason", "why"),
    [
        ("NotEnoughMembers", "orders-2 is not drained: jobs with REPLICATE 3 need as many members, 2 remain"),
        ("BelowMinimum", "spec.minReplicas is 3: lower it, or raise spec.replicas to it"),
    ],
)
def test_scale_reports_why_a_smaller_size_was_refused(
    disque: Plugin, kubernetes: FakeKubernetes, reason: str, why: str
) -> None:
    refusing = condition("Draining", "False", reason, why)
    steps(kubernetes, {ORDERS: {"status": {"observedGeneration": 2, "conditions": [refusing]}}})
    done = disque("scale", "orders", "2")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, why)


@pytest.mark.parametrize("replicas", [3, 5])
def test_scale_ignores_a_refused_drain_of_a_pod_that_remains(
    disque: Plugin, kubernetes: FakeKubernetes, replicas: int
) -> None:
    refusing = condition("Draining", "False", "NotEnoughMembers", "orders-2 is not drained: jobs with REPLICATE 3")
    resized = running(replicas=replicas, generation=2)
    steps(kubernetes, {ORDERS: {"status": resized | {"conditions": [*resized["conditions"], refusing]}}})
    assert disque.ok("scale", "orders", str(replicas)) == f"orders scaled to {replicas} nodes\n"


def test_scale_reports_a_timeout_and_keeps_the_change(disque: Plugin, kubernetes: FakeKubernetes) -> None:
    done = disque("scale", "orders", "5", "--timeout", "0")
    assert done.returncode == 1
    assert done.stderr.endswith(
        "timed out after 0 s; still in progress: Running: all 3 members are ready and connected\n"
    )
    assert kubernetes.get(CLUSTERS, "orders")["spec"]["replicas"] == 5


def test_restart_waits_until_all_pods_are_replaced(disque: Plugin, kubernetes: FakeKubernetes) -> None:
    replaced = [{f"pods/orders-{ordinal}": {"metadata": {"uid": "new"}}} for ordinal in (2, 1, 0)]
    steps(kubernetes, *replaced)
    assert disque.ok("restart", "orders") == "orders restarted\n"
    assert "disque.dev/restart-at" in kubernetes.get(CLUSTERS, "orders")["metadata"]["annotations"]
    assert kubernetes.state["pending_changes"] == []


def test_drain_annotates_the_pod_and_undo_removes_the_annotation(disque: Plugin, kubernetes: FakeKubernetes) -> None:
    steps(kubernetes, {}, {ORDERS: {"status": {"conditions": [DRAINED]}}})
    assert "orders-1 is drained and safe to stop" in disque.ok("drain", "orders", "orders-1")
    assert kubernetes.get("pods", "orders-1")["metadata"]["annotations"] == {"disque.dev/drain": "true"}
    assert disque.ok("drain", "orders", "orders-1", "--undo") == "orders-1 accepts jobs again\n"
    assert kubernetes.get("pods", "orders-1")["metadata"]["annotations"] == {}


def test_refused_drain_removes_the_annotation(disque: Plugin, kubernetes: FakeKubernetes) -> None:
    why = "orders-1 is not drained: jobs with REPLICATE 3 need as many members, 2 remain"
    steps(
        kubernetes, {}, {ORDERS: {"status": {"conditions": [condition("Draining", "False", "NotEnoughMembers", why)]}}}
    )
    done = disque("drain", "orders", "orders-1")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, why)
    assert kubernetes.get("pods", "orders-1")["metadata"]["annotations"] == {}


@pytest.mark.parametrize(
    "left",
    [
        DRAINED,
        condition("Draining", "False", "NotEnoughMembers", "orders-1 is not drained: jobs with REPLICATE 3"),
    ],
    ids=["drained", "refused"],
)
def test_drain_ignores_the_result_of_an_earlier_drain(disque: Plugin, kubernetes: FakeKubernetes, left: Json) -> None:
    healthy = running()
    put(kubernetes, cluster(status=healthy | {"conditions": [left]}))
    steps(kubernetes, {}, {}, {ORDERS: {"status": healthy}}, {}, {ORDERS: {"status": {"conditions": [DRAINED]}}})
    assert "orders-1 is drained and safe to stop" in disque.ok("drain", "orders", "orders-1")
    assert kubernetes.state["pending_changes"] == []
    verbs = [next(word for word in words if word in {"get", "annotate"}) for words in kubernetes.calls()]
    assert verbs == ["get", "get", "get", "get", "annotate", "get", "get"]


def test_drain_is_refused_for_a_pod_that_scaling_in_cannot_remove(disque: Plugin, kubernetes: FakeKubernetes) -> None:
    why = "orders-2 is not drained: jobs with REPLICATE 3 need as many members, 2 remain"
    refusing = condition("Draining", "False", "NotEnoughMembers", why)
    put(kubernetes, cluster(replicas=2, status=running() | {"conditions": [refusing]}), [pod("orders-2")])
    done = disque("drain", "orders", "orders-2")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, why)


def test_drain_rejects_a_pod_of_another_cluster(disque: Plugin, kubernetes: FakeKubernetes) -> None:
    kubernetes.add("pods", pod("mail-0", of="mail"))
    done = disque("drain", "orders", "mail-0")
    assert (done.returncode, done.stderr) == (
        1,
        'pod "mail-0" not found; pods of the cluster: orders-0, orders-1, orders-2\n',
    )


def test_password_prints_only_the_password_on_standard_output(disque: Plugin) -> None:
    assert disque.ok("password", "orders") == f"{PASSWORD}\n"
    assert disque.json("password", "orders") == {
        "endpoint": "orders.shop.svc:7711",
        "secret": "orders-default-user",
        "key": "password",
        "password": PASSWORD,
    }


def test_logs_merges_all_pods_by_time(disque: Plugin, kubernetes: FakeKubernetes) -> None:
    kubernetes.change(
        logs={
            "orders-0": ["2026-01-01T00:00:01.000000000Z one", "2026-01-01T00:00:03.000000000Z three"],
            "orders-1": ["2026-01-01T00:00:02.000000000Z two"],
        }
    )
    assert disque.ok("logs", "orders") == "[orders-0] one\n[orders-1] two\n[orders-0] three\n"
    assert disque.ok("logs", "orders", "orders-1", "--timestamps") == "[orders-1] 2026-01-01T00:00:02.000000000Z two\n"
    assert disque.ok("logs", "orders", "--tail", "1").splitlines() == ["[orders-1] two", "[orders-0] three"]


def test_logs_follows_a_restart_without_repeating_lines(disque: Plugin, kubernetes: FakeKubernetes) -> None:
    first = ["2026-01-01T00:00:01.000000000Z one"]
    kubernetes.change(logs={"orders-0": first})
    with disque.started("logs", "orders", "-f") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "[orders-0] one\n"
        kubernetes.change(logs={"orders-0": [*first, "2026-01-01T00:00:02.000000000Z two"]})
        assert process.stdout.readline() == "[orders-0] two\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        (("status", "nosuch"), 1, "list all clusters with: kubectl disque status --all-namespaces"),
        (("nosuch",), 2, "invalid choice: 'nosuch'"),
        (("status", "--bogus"), 2, "unrecognized arguments: --bogus"),
        (("scale", "orders", "many"), 2, "invalid int value: 'many'"),
        (("cli", "--pod", "x", "orders"), 1, 'pod "x" not found; pods of the cluster: orders-0, orders-1, orders-2'),
    ],
)
def test_error_is_a_message_and_an_exit_status(disque: Plugin, words: tuple[str, ...], status: int, text: str) -> None:
    done = disque(*words)
    assert done.returncode == status
    assert text in done.stderr
    assert "Traceback" not in done.stderr


def test_exit_status_is_3_if_the_api_server_is_down(disque: Plugin, kubernetes: FakeKubernetes) -> None:
    kubernetes.change(failing_requests=1)
    assert disque("status", "orders").returncode == 3


def test_error_says_to_install_the_operator_if_the_resource_type_is_missing(
    disque: Plugin, kubernetes: FakeKubernetes
) -> None:
    kubernetes.change(objects={})
    done = disque("status")
    assert (done.returncode, "install the operator first" in done.stderr) == (1, True)


def test_error_says_that_kubectl_is_missing(disque: Plugin, tmp_path: Path) -> None:
    done = disque("status", PATH=str(tmp_path / "empty"))
    assert (done.returncode, done.stderr) == (3, "kubectl not found in PATH; install it first\n")


def test_password_comes_from_the_environment_if_the_secret_is_forbidden(
    disque: Plugin, kubernetes: FakeKubernetes
) -> None:
    kubernetes.change(forbidden=["secret"])
    done = disque("password", "orders")
    assert (done.returncode, "DISQUE_PASSWORD" in done.stderr) == (1, True)
    assert disque("password", "orders", DISQUE_PASSWORD="given").stdout == "given\n"


def test_kubectl_options_may_precede_or_follow_the_command(disque: Plugin, kubernetes: FakeKubernetes) -> None:
    disque.ok("--context", "far", "status", "-n", "shop", "--kubeconfig", "/k")
    assert kubernetes.calls()[-1][:6] == ["--kubeconfig", "/k", "--context", "far", "--namespace", "shop"]


def test_help_lists_commands_and_exit_statuses(disque: Plugin) -> None:
    text = disque.ok("--help")
    for word in ("status", "drain", "report", "hibernate", "130  interrupted by Ctrl-C"):
        assert word in text
    assert "--undo" in disque.ok("drain", "--help")


def test_status_command_does_not_import_rich_or_the_operators_libraries() -> None:
    program = (
        "import sys; import disque_operator.kubectl.main; import disque_operator.kubectl.commands.status;"
        "print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True).stdout.split()
    assert {"rich", "kubernetes", "kopf", "asyncio", "prometheus_client"}.isdisjoint(loaded)


def test_an_ordered_queue_is_counted_once() -> None:
    part = QueueStats("steps", 3, 0, 0, 0, (), 0, 5, 0, "none", kind="ordered")
    (row,) = merged({"orders-0": [part], "orders-1": [part]})
    assert (row.length, row.total(lambda stats: stats.jobs_in), row.where) == (3, 5, ("ordered=3",))
