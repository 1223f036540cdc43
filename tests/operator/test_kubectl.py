"""`kubectl disque` without nodes: what it shows of the status, what it changes, how it waits and ends."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.fake_kubectl import CLUSTERS, FakeKubernetes, Json
from support.plugin import PASSWORD, Plugin, cluster, condition, pod, put, running, secret, steps

ORDERS = f"{CLUSTERS}/orders"
RESTS = condition("Draining", "True", "Drained", "orders-1 has handed all its jobs over and rests")


@pytest.fixture
def kubernetes(tmp_path: Path) -> FakeKubernetes:
    fake = FakeKubernetes(tmp_path)
    put(fake, cluster(status=running()))
    fake.add("secret", secret())
    return fake


@pytest.fixture
def disque(kubernetes: FakeKubernetes) -> Plugin:
    return Plugin(kubernetes)


def test_all_clusters_are_a_table(disque: Plugin, kubernetes: FakeKubernetes) -> None:
    put(kubernetes, cluster("mail", 1))
    lines = [line.split("\t") for line in disque.ok("status").splitlines()]
    assert lines[0] == ["name", "phase", "replicas", "ready", "jobs", "queued", "version", "age_s", "message"]
    assert [line[:7] for line in lines[1:]] == [
        ["orders", "Running", "3", "3", "30", "3", "0.1.0"],
        ["mail", "", "1", "", "", "", ""],
    ]


def test_the_clusters_of_all_namespaces_have_their_namespace(disque: Plugin) -> None:
    assert [row["namespace"] for row in disque.json("status", "-A")] == ["shop"]


def test_a_cluster_shows_its_conditions_and_members(disque: Plugin) -> None:
    text = disque.ok("status", "orders")
    title, conditions, members = text.split("\n\n")
    assert title == "Running: all 3 members serve"
    assert conditions.splitlines()[1].startswith("Ready\tTrue\tAllReady\t")
    assert [line.split("\t")[0] for line in members.splitlines()] == ["pod", "orders-0", "orders-1", "orders-2"]


def test_json_is_the_status_as_it_stands(disque: Plugin) -> None:
    shown = disque.json("status", "orders")
    assert shown == {"namespace": "shop", "name": "orders", "generation": 1, "status": running()}


def test_a_cluster_that_is_not_ready_shows_in_the_exit_status(disque: Plugin, kubernetes: FakeKubernetes) -> None:
    put(kubernetes, cluster(generation=2, status=running()))
    assert disque("status", "orders").returncode == 1
    assert disque("status").returncode == 0


def test_a_drain_shows_how_far_it_is(disque: Plugin, kubernetes: FakeKubernetes) -> None:
    drain = {"pod": "orders-2", "jobsLeft": 1234, "rate": 560, "secondsLeft": 2, "secondsElapsed": 12, "waitsFor": ""}
    put(kubernetes, cluster(status=running() | {"phase": "Draining", "drain": drain}))
    first = disque("status", "orders").stdout.splitlines()[0]
    assert first == "Draining orders-2: 1,234 jobs left, 560 jobs/s, about 2s to go, 12s so far"


def test_watching_tells_each_change_once(disque: Plugin, kubernetes: FakeKubernetes) -> None:
    steps(kubernetes, {}, {}, {ORDERS: {"status": {"phase": "Growing", "message": "pods are added"}}})
    with disque.started("status", "orders", "--watch") as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(2)]
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130
    assert lines == ["Running: all 3 members serve\n", "Growing: pods are added\n"]


@pytest.mark.parametrize(
    ("command", "field", "value"),
    [
        ("pause", "paused", True),
        ("resume", "paused", False),
        ("hibernate", "hibernate", True),
        ("wake", "hibernate", False),
    ],
)
def test_switches_change_the_spec(
    disque: Plugin, kubernetes: FakeKubernetes, command: str, field: str, value: bool
) -> None:
    assert disque.ok(command, "orders", "--no-wait") == f"orders: {command} is asked for\n"
    assert kubernetes.get(CLUSTERS, "orders")["spec"][field] is value


def test_hibernating_waits_until_all_is_stopped(disque: Plugin, kubernetes: FakeKubernetes) -> None:
    steps(
        kubernetes,
        {ORDERS: {"status": {"phase": "Hibernating", "message": "all members are being stopped"}}},
        {ORDERS: {"status": {"phase": "Hibernated", "observedGeneration": 2}}},
    )
    done = disque("hibernate", "orders")
    assert (done.returncode, done.stdout) == (0, "orders is stopped, with its jobs on its volumes\n")
    assert done.stderr == "Hibernating: all members are being stopped\n"


@pytest.mark.parametrize(("command", "phase"), [("pause", "Paused"), ("hibernate", "Hibernated")])
def test_a_switch_is_not_done_before_the_operator_has_seen_it(
    disque: Plugin, kubernetes: FakeKubernetes, command: str, phase: str
) -> None:
    put(kubernetes, cluster(status=running() | {"phase": phase}))  # it was resumed, or woken, a moment ago
    steps(kubernetes, {}, {ORDERS: {"status": {"observedGeneration": 2}}})
    disque.ok(command, "orders")
    assert kubernetes.state["after"] == []


def test_scaling_shows_the_drain_and_outlives_an_api_server_that_is_away(
    disque: Plugin, kubernetes: FakeKubernetes
) -> None:
    drain = {
        "pod": "orders-2",
        "jobsLeft": 7,
        "rate": 0,
        "secondsLeft": -1,
        "secondsElapsed": 1,
        "waitsFor": "orders-1",
    }
    steps(
        kubernetes,
        {ORDERS: {"status": {"phase": "Draining", "drain": drain}}},
        {ORDERS: {"status": running(replicas=2, generation=2) | {"drain": None}}},
    )
    with disque.started("scale", "orders", "2") as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "Draining orders-2: 7 jobs left, 1s so far, it waits: orders-1\n"
        kubernetes.change(away=1)
        output, trouble = process.communicate(timeout=30)
    assert (process.returncode, output) == (0, "orders has 2 nodes\n")
    assert trouble.startswith("No answer from Kubernetes, trying again: The connection to the server")
    assert kubernetes.get(CLUSTERS, "orders")["spec"]["replicas"] == 2


@pytest.mark.parametrize(
    ("reason", "why"),
    [
        ("NotEnoughMembers", "orders-2 stays: jobs with REPLICATE 3 need as many members, 2 would remain"),
        ("BelowMinimum", "spec.minReplicas is 3: lower it, or set spec.replicas to it"),
    ],
)
def test_a_refused_shrink_says_why(disque: Plugin, kubernetes: FakeKubernetes, reason: str, why: str) -> None:
    refusing = condition("Draining", "False", reason, why)
    steps(kubernetes, {ORDERS: {"status": {"observedGeneration": 2, "conditions": [refusing]}}})
    done = disque("scale", "orders", "2")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, why)


@pytest.mark.parametrize("replicas", [3, 5])
def test_a_pod_that_stays_in_any_case_is_no_refusal_of_a_size(
    disque: Plugin, kubernetes: FakeKubernetes, replicas: int
) -> None:
    refusing = condition("Draining", "False", "NotEnoughMembers", "orders-2 stays: jobs with REPLICATE 3 need as many")
    resized = running(replicas=replicas, generation=2)
    steps(kubernetes, {ORDERS: {"status": resized | {"conditions": [*resized["conditions"], refusing]}}})
    assert disque.ok("scale", "orders", str(replicas)) == f"orders has {replicas} nodes\n"


def test_what_does_not_come_in_time_is_told(disque: Plugin, kubernetes: FakeKubernetes) -> None:
    done = disque("scale", "orders", "5", "--timeout", "0")
    assert done.returncode == 1
    assert done.stderr.endswith("Not done after 0 s, and it goes on: Running: all 3 members serve\n")
    assert kubernetes.get(CLUSTERS, "orders")["spec"]["replicas"] == 5


def test_a_restart_is_over_when_all_pods_are_others(disque: Plugin, kubernetes: FakeKubernetes) -> None:
    replaced = [{f"pods/orders-{ordinal}": {"metadata": {"uid": "new"}}} for ordinal in (2, 1, 0)]
    steps(kubernetes, *replaced)
    assert disque.ok("restart", "orders") == "orders: all nodes were restarted\n"
    assert "disque.dev/restart-at" in kubernetes.get(CLUSTERS, "orders")["metadata"]["annotations"]
    assert kubernetes.state["after"] == []


def test_a_pod_is_drained_and_taken_back(disque: Plugin, kubernetes: FakeKubernetes) -> None:
    steps(kubernetes, {}, {ORDERS: {"status": {"conditions": [RESTS]}}})
    assert "orders-1 is empty and safe to stop" in disque.ok("drain", "orders", "orders-1")
    assert kubernetes.get("pods", "orders-1")["metadata"]["annotations"] == {"disque.dev/drain": "true"}
    assert disque.ok("drain", "orders", "orders-1", "--undo") == "orders-1 takes jobs again\n"
    assert kubernetes.get("pods", "orders-1")["metadata"]["annotations"] == {}


def test_a_refused_drain_leaves_nothing_behind(disque: Plugin, kubernetes: FakeKubernetes) -> None:
    why = "orders-1 stays: jobs with REPLICATE 3 need as many members, 2 would remain"
    steps(
        kubernetes, {}, {ORDERS: {"status": {"conditions": [condition("Draining", "False", "NotEnoughMembers", why)]}}}
    )
    done = disque("drain", "orders", "orders-1")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, why)
    assert kubernetes.get("pods", "orders-1")["metadata"]["annotations"] == {}


@pytest.mark.parametrize(
    "left",
    [
        RESTS,
        condition("Draining", "False", "NotEnoughMembers", "orders-1 stays: jobs with REPLICATE 3 need as many"),
    ],
    ids=["drained", "refused"],
)
def test_what_is_left_of_the_last_drain_says_nothing_about_this_one(
    disque: Plugin, kubernetes: FakeKubernetes, left: Json
) -> None:
    serves = running()
    put(kubernetes, cluster(status=serves | {"conditions": [left]}))
    steps(kubernetes, {}, {}, {ORDERS: {"status": serves}}, {}, {ORDERS: {"status": {"conditions": [RESTS]}}})
    assert "orders-1 is empty and safe to stop" in disque.ok("drain", "orders", "orders-1")
    assert kubernetes.state["after"] == []
    verbs = [next(word for word in words if word in {"get", "annotate"}) for words in kubernetes.calls()]
    assert verbs == ["get", "get", "get", "get", "annotate", "get", "get"]


def test_a_pod_that_a_shrink_can_not_take_can_not_be_drained_either(disque: Plugin, kubernetes: FakeKubernetes) -> None:
    why = "orders-2 stays: jobs with REPLICATE 3 need as many members, 2 would remain"
    refusing = condition("Draining", "False", "NotEnoughMembers", why)
    put(kubernetes, cluster(replicas=2, status=running() | {"conditions": [refusing]}), [pod("orders-2")])
    done = disque("drain", "orders", "orders-2")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, why)


def test_only_pods_of_the_cluster_are_drained(disque: Plugin, kubernetes: FakeKubernetes) -> None:
    kubernetes.add("pods", pod("mail-0", of="mail"))
    done = disque("drain", "orders", "mail-0")
    assert (done.returncode, done.stderr) == (1, "No pod mail-0; there are: orders-0, orders-1, orders-2\n")


def test_the_password_stands_alone_on_standard_output(disque: Plugin) -> None:
    assert disque.ok("password", "orders") == f"{PASSWORD}\n"
    assert disque.json("password", "orders") == {
        "endpoint": "orders.shop.svc:7711",
        "secret": "orders-auth",
        "key": "password",
        "password": PASSWORD,
    }


def test_logs_of_all_pods_are_one_text_in_the_order_of_time(disque: Plugin, kubernetes: FakeKubernetes) -> None:
    kubernetes.change(
        logs={
            "orders-0": ["2026-01-01T00:00:01.000000000Z one", "2026-01-01T00:00:03.000000000Z three"],
            "orders-1": ["2026-01-01T00:00:02.000000000Z two"],
        }
    )
    assert disque.ok("logs", "orders") == "[orders-0] one\n[orders-1] two\n[orders-0] three\n"
    assert disque.ok("logs", "orders", "orders-1", "--timestamps") == "[orders-1] 2026-01-01T00:00:02.000000000Z two\n"
    assert disque.ok("logs", "orders", "--tail", "1").splitlines() == ["[orders-1] two", "[orders-0] three"]


def test_logs_are_followed_through_a_restart_without_a_line_twice(disque: Plugin, kubernetes: FakeKubernetes) -> None:
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
        (("status", "nosuch"), 1, "`kubectl disque status --all-namespaces` lists those that exist"),
        (("nosuch",), 2, "invalid choice: 'nosuch'"),
        (("status", "--bogus"), 2, "unrecognized arguments: --bogus"),
        (("scale", "orders", "many"), 2, "invalid int value: 'many'"),
        (("cli", "--pod", "x", "orders"), 1, "No pod x; there are: orders-0, orders-1, orders-2"),
    ],
)
def test_what_goes_wrong_is_a_sentence_and_a_status(
    disque: Plugin, words: tuple[str, ...], status: int, text: str
) -> None:
    done = disque(*words)
    assert done.returncode == status
    assert text in done.stderr
    assert "Traceback" not in done.stderr


def test_kubernetes_that_does_not_answer_has_a_status_of_its_own(disque: Plugin, kubernetes: FakeKubernetes) -> None:
    kubernetes.change(away=1)
    assert disque("status", "orders").returncode == 3


def test_kubernetes_without_the_resource_is_told_to_install_it(disque: Plugin, kubernetes: FakeKubernetes) -> None:
    kubernetes.change(objects={})
    done = disque("status")
    assert (done.returncode, "install the operator first" in done.stderr) == (1, True)


def test_without_kubectl_it_says_so(disque: Plugin, tmp_path: Path) -> None:
    done = disque("status", PATH=str(tmp_path / "empty"))
    assert (done.returncode, done.stderr) == (3, "There is no kubectl on the PATH; everything is done by it\n")


def test_a_secret_that_may_not_be_read_can_be_said(disque: Plugin, kubernetes: FakeKubernetes) -> None:
    kubernetes.change(forbidden=["secret"])
    done = disque("password", "orders")
    assert (done.returncode, "DISQUE_PASSWORD" in done.stderr) == (1, True)
    assert disque("password", "orders", DISQUE_PASSWORD="said").stdout == "said\n"


def test_the_context_reaches_kubectl_wherever_it_stands(disque: Plugin, kubernetes: FakeKubernetes) -> None:
    disque.ok("--context", "far", "status", "-n", "shop", "--kubeconfig", "/k")
    assert kubernetes.calls()[-1][:6] == ["--kubeconfig", "/k", "--context", "far", "--namespace", "shop"]


def test_help_lists_all_commands_and_statuses(disque: Plugin) -> None:
    text = disque.ok("--help")
    for word in ("status", "drain", "report", "hibernate", "130  interrupted by Ctrl-C"):
        assert word in text
    assert "--undo" in disque.ok("drain", "--help")


def test_a_start_loads_neither_tables_nor_the_operator_nor_a_client_library() -> None:
    program = (
        "import sys; import disque_operator.kubectl.main; import disque_operator.kubectl.commands.status;"
        "print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True).stdout.split()
    assert {"rich", "kubernetes", "kopf", "asyncio", "prometheus_client"}.isdisjoint(loaded)
