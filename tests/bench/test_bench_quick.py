"""The benchmark runs: on the broker alone, with few jobs, every reply checked by the load generator."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
WORKLOADS = {"add1", "get1", "add16", "get32", "cycle", "half_add", "half_cycle"}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("cc") is None, reason="the load generator needs a C compiler"),
    pytest.mark.timeout(900),  # a minute and a half on a machine of its own, and others run beside it
]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    """The output and the results of the benchmark."""
    output = tmp_path_factory.mktemp("bench") / "results.json"
    command = [sys.executable, str(ROOT / "bench" / "run.py"), "--quick", "--brokers", "disqued"]
    done = subprocess.run(
        [*command, "--scale", "0.2", "--output", str(output)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, json.loads(output.read_text())


def test_every_workload_finishes_all_its_jobs_without_a_wrong_reply(run: tuple[str, dict[str, Any]]) -> None:
    comparison = run[1]["comparison"]
    assert set(comparison) == WORKLOADS
    for workload, measured in comparison.items():
        (line,) = measured["disqued"]
        assert line["errors"] == 0, workload
        assert line["jobs_per_s"] > 0, workload
        assert 0 < line["server_cpu_us_per_job"] < 10_000, workload


def test_cycle_is_measured_with_and_without_tls(run: tuple[str, dict[str, Any]]) -> None:
    printed, results = run
    for way in ("plain", "tls"):
        (line,) = results["encryption"][way]["disqued"]
        assert line["errors"] == 0
        assert line["jobs"] == results["sizes"]["cycle"]
    assert "Whole cycle with TLS 1.3" in printed


def test_options_of_addjob_are_measured_beside_none(run: tuple[str, dict[str, Any]]) -> None:
    printed, results = run
    assert set(results["options"]) == {"none", "PRIORITY", "META of 64 bytes", "NACK with back-off"}
    for measured in results["options"].values():
        assert [lines[0]["errors"] for lines in measured.values()] == [0, 0, 0]
    assert "Options and settings, beside none in the same round" in printed


def test_moves_are_measured_beside_adds_and_acknowledgements(run: tuple[str, dict[str, Any]]) -> None:
    printed, results = run
    assert set(results["moves"]) == {"one", "three, REPLICATE 3"}
    for [line] in results["moves"].values():
        assert min(line.values()) > 0
    assert "Moves, beside jobs that are added and acknowledged" in printed


def test_latencies_are_ordered_and_each_request_is_counted(run: tuple[str, dict[str, Any]]) -> None:
    results = run[1]
    (added,) = results["comparison"]["add1"]["disqued"]
    latency = added["latency_us"]["add"]
    assert latency["count"] == results["sizes"]["one"]
    assert 0 < latency["p50"] <= latency["p99"] <= latency["p999"] <= latency["max"]
    (cycled,) = results["comparison"]["cycle"]["disqued"]
    assert cycled["latency_us"]["delivery"]["count"] == results["sizes"]["cycle"]


def test_noise_of_the_machine_is_measured_and_shown(run: tuple[str, dict[str, Any]]) -> None:
    output, results = run
    (found,) = results["noise"]
    assert 0 <= found["lost"] < 1
    assert "noise: a process that only reads the clock" in output
    assert "From the add to a blocked worker at half load" in output


def test_memory_pauses_and_growth_are_measured_at_every_level(run: tuple[str, dict[str, Any]]) -> None:
    results = run[1]
    assert 64 < results["memory"]["disqued"] < 10_000  # at least the body
    assert len(results["pauses_ms"]) == results["sizes"]["rounds"]
    assert all(len(found) == 1 and found[0] >= 0 for found in results["longest_ms"].values())
    for what, curves in results["growth"].items():
        levels = [point["level"] for point in curves["disqued"]]
        assert levels == results["sizes"][what]
        assert all(point["cpu_us"] > 0 for point in curves["disqued"])


def test_the_log_is_measured_under_each_policy(run: tuple[str, dict[str, Any]]) -> None:
    results = run[1]
    assert set(results["policies"]) == {"add1", "get1", "add16", "get32"}
    for measured in results["policies"].values():
        assert set(measured) == {"none", "no", "everysec", "always"}
        assert all(line["jobs_per_s"] > 0 for brokers in measured.values() for line in brokers["disqued"])
    (loaded,) = results["loads"]["disqued"]
    assert loaded["file_bytes"] > results["sizes"]["load"] * 64  # at least the bodies
    assert loaded["seconds"] > 0
    assert all(measured["everysec"] and measured["none"] for measured in results["logged_cluster"].values())


def test_latency_is_taken_before_during_and_after_a_rewrite(run: tuple[str, dict[str, Any]]) -> None:
    results = run[1]
    (found,) = results["rewrites"]["disqued"]
    assert sum(window[0] for window in found["windows"]) == int(
        results["sizes"]["rewrite_rate"] * results["sizes"]["rewrite_s"]
    )
    for phase in ("before", "during"):
        assert 0 < found[phase]["p50"] <= found[phase]["p99"] <= found[phase]["worst_p99"] <= found[phase]["max"]
    assert found["began_s"] > 0
    assert found["seconds"] > 0


def test_what_nodes_can_do_at_most_is_measured(run: tuple[str, dict[str, Any]]) -> None:
    printed, results = run
    for size, job_bytes in results["body_memory"].items():
        assert job_bytes > int(size)
    assert set(results["shared_port"]) == {"add16", "cycle"}
    for by_count in results["shared_port"].values():
        assert [int(count) for count in by_count] == results["sizes"]["shared"]
        assert all(line["cpu_us"] > 0 for rounds in by_count.values() for line in rounds)
    for file, workloads in results["copies"].items():
        for cost in (line for rounds in workloads.values() for line in rounds):
            assert cost["clients"] > 0
            assert cost["other"] > 0
            assert (cost["file_bytes"] > 64) == (file == "everysec"), "at least the body"
    assert "Sizing: three copies and files" in printed


def test_the_cost_of_a_rewrite_is_measured_for_each_workload(run: tuple[str, dict[str, Any]]) -> None:
    measured = run[1]["rewrite_cost"]
    assert set(measured["rates"]) == {"add16", "get32", "cycle"}
    assert all(found[0] > 0 for found in measured["rates"].values())
    assert measured["cpu_us"][0] >= 0


def test_the_report_says_what_was_measured_on_what(run: tuple[str, dict[str, Any]]) -> None:
    printed, results = run
    for fact in (
        results["machine"]["processor"],
        results["machine"]["disqued"],
        "whole cycle",
        "floor 460",
        "everysec",
        "floor 30",
    ):
        assert fact in printed


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--brokers", "disqued,kafka"], "no broker is called 'kafka'"),
        (["--brokers", "beanstalkd"], "must begin with disqued"),
        (["--parts", "coffee"], "no part is called 'coffee'"),
    ],
    ids=["unknown broker", "not this broker first", "unknown part"],
)
def test_a_wrong_command_line_is_refused_with_a_reason(arguments: list[str], complaint: str) -> None:
    command = [sys.executable, str(ROOT / "bench" / "run.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert complaint in done.stderr


@pytest.mark.parametrize(
    ("reply", "complaint"),
    [
        (b"-OOM command not allowed\r\n", "expected a job ID, got: -OOM command not allowed"),
        (b"+OK\r\n", "expected a job ID, got: +OK"),
        (b"", "the broker closed a connection"),
    ],
    ids=["an error reply", "not a job ID", "a hang-up"],
)
def test_the_generator_fails_on_a_wrong_reply(run: object, reply: bytes, complaint: str) -> None:
    """A peer that answers every request wrongly, in a process of its own because the generator reads its CPU clock."""
    del run  # has compiled the generator
    peer_code = (
        "import socket, sys; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True);"
        f"c, _ = s.accept(); c.recv(4096); c.sendall({reply!r}); c.shutdown(1); c.recv(4096)"
    )
    with subprocess.Popen([sys.executable, "-c", peer_code], stdout=subprocess.PIPE, text=True) as peer:
        assert peer.stdout is not None
        port = peer.stdout.readline().strip()
        command = [str(ROOT / "build" / "loadgen"), "--protocol", "disque", "--mode", "add", "--jobs", "1"]
        command += ["--connections", "1", "--port", port, "--server-pid", str(peer.pid)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    line = json.loads(done.stdout)
    assert line["errors"] == 1
    assert line["error"].startswith(complaint)


def test_the_node_alone_is_measured_verb_by_verb() -> None:
    command = [sys.executable, str(ROOT / "bench" / "micro_node.py"), "--jobs", "320"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    verbs = ["parse", "arm + disarm", "ADDJOB by 16", "ADDJOB singly", "GETJOB", "ACKJOB", "rewrite", "load"]
    for verb in [*verbs, "ADDJOB by 16, logged", "ADDJOB singly, logged", "ACKJOB by 32, logged"]:
        assert f"  {verb}" in done.stdout
    assert done.stdout.count(" ns\n") == 11
