"""The entry point of the Spark image: drivers, executors, spark-submit and other programs."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import sparkentry

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "image" / "sparkentry.py"
POD = {
    "SPARK_HOME": "/spark",
    "JAVA_HOME": "/java",
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@driver:7078",
    "SPARK_EXECUTOR_ID": "3",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_EXECUTOR_MEMORY": "700m",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.9",
    "SPARK_EXECUTOR_POD_NAME": "enqueue-exec-3",
    "SPARK_RESOURCE_PROFILE_ID": "0",
}
"""The variables of an executor's pod."""


def with_java() -> str:
    """Return the path of Java; skip the test if Spark or Java is not installed."""
    pytest.importorskip("pyspark", reason="PySpark is not installed")
    java = shutil.which("java")
    if java is None:
        pytest.skip("Java is not installed")
    return java


def test_executor_gets_its_options_from_variables() -> None:
    assert sparkentry.start("sparkentry", ["executor"], POD).words == (
        "/java/bin/java", "-Xms700m", "-Xmx700m", "-cp", "/spark/jars/*",
        "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend",
        "--driver-url", "spark://CoarseGrainedScheduler@driver:7078", "--executor-id", "3", "--cores", "2",
        "--app-id", "spark-1", "--hostname", "10.0.0.9", "--resourceProfileId", "0", "--podName", "enqueue-exec-3",
    )  # fmt: skip


def test_executor_gets_jvm_options_in_order() -> None:
    options = {f"SPARK_JAVA_OPT_{number}": f"-Dn={number}" for number in (10, 2, 0)}
    words = sparkentry.executor(POD | options | {"SPARK_JAVA_OPTIONS": "-Dno"}).words
    assert words[1:4] == ("-Dn=0", "-Dn=2", "-Dn=10")
    assert "-Dno" not in words


def test_class_path_has_settings_before_user_classes_before_spark() -> None:
    more = {"SPARK_CONF_DIR": "/conf", "SPARK_CLASSPATH": "/mine/*", "HADOOP_CONF_DIR": "/hadoop"}
    assert sparkentry.class_path(POD | more | {"SPARK_DIST_CLASSPATH": "/last"}) == (
        "/hadoop:/conf:/mine/*:/spark/jars/*:/last"
    )


@pytest.mark.parametrize("missing", [variable for _, variable in sparkentry.EXECUTOR])
def test_missing_variable_of_an_executor_is_named(missing: str) -> None:
    with pytest.raises(sparkentry.NotStarted, match=f"^{missing} is not set; .*pods"):
        sparkentry.executor({**POD, missing: ""})


def test_driver_runs_in_client_mode_on_its_own_address() -> None:
    options = sparkentry.driver_options(
        {"SPARK_DRIVER_BIND_ADDRESS": "10.0.0.7"}, ["--class", "C", "local:///a.py", "x"]
    )
    assert options == (
        "--conf", "spark.driver.bindAddress=10.0.0.7", "--conf", "spark.executorEnv.SPARK_DRIVER_POD_IP=10.0.0.7",
        "--deploy-mode", "client", "--class", "C", "local:///a.py", "x",
    )  # fmt: skip


def test_driver_outside_of_a_pod_is_an_error() -> None:
    with pytest.raises(sparkentry.NotStarted, match="SPARK_DRIVER_BIND_ADDRESS"):
        sparkentry.start("sparkentry", ["driver", "--class", "C"], POD)


def test_arguments_of_the_launcher_are_kept() -> None:
    found = sparkentry.launched(b"Java says\n\0\n/java\0-cp\0/jars/*\0a b\n\0\0", {"A": "1"})
    assert found == sparkentry.Start(("/java", "-cp", "/jars/*", "a b\n", ""), {"A": "1"})


def test_variables_of_the_launcher_are_set() -> None:
    found = sparkentry.launched(b"\0\nenv\0LD_LIBRARY_PATH=/a=b\0A=2\0java\0X=1\0", {"A": "1"})
    assert found == sparkentry.Start(("java", "X=1"), {"A": "2", "LD_LIBRARY_PATH": "/a=b"})


def test_launcher_without_a_command_is_an_error() -> None:
    with pytest.raises(sparkentry.NotStarted, match="no command"):
        sparkentry.launched(b"Error\n", {})


def test_other_programs_are_started_unchanged() -> None:
    found = sparkentry.start("sparkentry", ["disque", "ping"], POD)
    assert found == sparkentry.Start(("disque", "ping"), POD)


def test_missing_command_is_an_error_that_lists_the_commands() -> None:
    done = subprocess.run([sys.executable, PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(
        "sparkentry: no command; give a program, or one of driver, executor, spark-submit, submit"
    )


def test_missing_program_is_an_error() -> None:
    done = subprocess.run([sys.executable, PROGRAM, "/no/such"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "sparkentry: [Errno 2] No such file or directory: '/no/such'\n")


def test_program_replaces_the_entry_point_and_gets_signals() -> None:
    with subprocess.Popen([sys.executable, PROGRAM, "sleep", "60"]) as process:
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == -signal.SIGTERM


def submission(*lines: str, status: int = 0) -> sparkentry.Start:
    """Return a program that logs these lines, as spark-submit does."""
    program = f"import sys; sys.stderr.write({chr(10).join(lines)!r}); sys.exit({status})"
    return sparkentry.Start((sys.executable, "-c", program), dict(os.environ))


WAITING = [f"INFO Application status for spark-1 (phase: {phase})" for phase in ("Pending", "Running")]


@pytest.mark.parametrize(
    ("lines", "status", "expected"),
    [
        ([*WAITING, "(phase: Succeeded)", "finished"], 0, 0),
        ([*WAITING, "(phase: Failed)", "exit code: 1"], 0, 1),
        (WAITING, 0, 1),
        (["submitted"], 0, 0),
        (["no such option"], 2, 2),
    ],
    ids=["succeeded", "failed", "pod deleted", "not waiting", "not submitted"],
)
def test_submit_returns_whether_the_driver_succeeded(
    lines: list[str], status: int, expected: int, capfd: pytest.CaptureFixture[str]
) -> None:
    assert sparkentry.follow(submission(*lines, status=status)) == expected
    log = capfd.readouterr().err.splitlines()
    assert log[: len(lines)][0] == lines[0]
    assert ("did not succeed" in log[-1]) == (expected == 1)


def test_spark_home_defaults_to_the_package_of_pyspark() -> None:
    pyspark = pytest.importorskip("pyspark")
    package = str(Path(pyspark.__file__).parent)
    assert sparkentry.with_home({}) == {"SPARK_HOME": package, "SPARK_SCALA_VERSION": "2.13"}
    assert sparkentry.with_home({"SPARK_HOME": "/mine", "A": "1"}) == {"SPARK_HOME": "/mine", "A": "1"}


def test_spark_accepts_the_class_and_options_of_executors(tmp_path: Path) -> None:
    java = with_java()
    home = sparkentry.with_home({})["SPARK_HOME"]
    found = sparkentry.executor(POD | {"SPARK_HOME": home, "JAVA_HOME": "", "SPARK_EXECUTOR_MEMORY": "64m"})
    words = [java, *found.words[1:], "--no-such-option"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 1
    assert "Unrecognized options: --no-such-option" in done.stderr


@pytest.mark.slow
@pytest.mark.long
def test_spark_submit_runs_a_job_with_its_settings(tmp_path: Path) -> None:
    with_java()
    job = tmp_path / "job.py"
    job.write_text(
        "import json, sys\n"
        "from pyspark.sql import SparkSession\n"
        "spark = SparkSession.builder.getOrCreate()\n"
        "value = spark.sparkContext.getConf().get('spark.said')\n"
        "print(json.dumps([spark.version, value, spark.range(5).count(), sys.argv[1:]]))\n"
    )
    link = tmp_path / "spark-submit"
    link.symlink_to(PROGRAM)
    conf = {"spark.said": 'two words, "quoted"', "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1"}
    options = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    done = subprocess.run(
        [sys.executable, link, "--master", "local[1]", *options, job, "an argument", ""],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable},
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [version("pyspark"), conf["spark.said"], 5, ["an argument", ""]]
