#!/opt/disque/bin/python3
"""The entry point of the image `disqued-spark`: starts a Spark driver, an executor, spark-submit or any program.

    sparkentry driver OPTION...    a driver in cluster mode, as started by Spark in the driver's pod
    sparkentry executor            an executor, configured by the environment variables that Spark sets in its pod
    spark-submit OPTION...         spark-submit; this file under that name, because Spark's own script needs Bash
    sparkentry submit OPTION...    spark-submit in cluster mode that fails if the driver fails; spark-submit does not
    sparkentry PROGRAM ...         any other program

The package of PySpark supports Kubernetes (`spark-kubernetes`), but provides no image. The arguments and variables are
those of Spark's classes `DriverCommandFeatureStep`, `BasicExecutorFeatureStep` and `KubernetesExecutorBackend`. Each
command except `submit` replaces this process, so that Java gets SIGTERM and shuts down cleanly.
"""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

BACKEND: Final = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
SUBMIT: Final = "org.apache.spark.deploy.SparkSubmit"
LAUNCHER: Final = ("-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""JVM options of Spark's launcher, which only builds a command line."""
EXECUTOR: Final = (
    ("--driver-url", "SPARK_DRIVER_URL"),
    ("--executor-id", "SPARK_EXECUTOR_ID"),
    ("--cores", "SPARK_EXECUTOR_CORES"),
    ("--app-id", "SPARK_APPLICATION_ID"),
    ("--hostname", "SPARK_EXECUTOR_POD_IP"),
    ("--resourceProfileId", "SPARK_RESOURCE_PROFILE_ID"),
    ("--podName", "SPARK_EXECUTOR_POD_NAME"),
)
"""The options of an executor, and the environment variables of its pod with their values."""
SUBMIT_AND_WAIT: Final = "submit"
PHASE: Final = re.compile(rb"\(phase: (\w+)\)")
"""Matches the driver's phase in the log of spark-submit."""

Environment = Mapping[str, str]


class NotStarted(Exception):
    """The program cannot be started; the text says why and goes to the log of the pod."""


@dataclass(frozen=True)
class Start:
    """A program to start: its arguments and environment variables."""

    words: tuple[str, ...]
    environment: dict[str, str]


def java(environment: Environment) -> str:
    """Return the `java` program in JAVA_HOME, or `java` to search PATH."""
    home = environment.get("JAVA_HOME")
    return str(Path(home, "bin", "java")) if home else "java"


def needed(environment: Environment, name: str) -> str:
    """Return a variable that Spark sets in its pods."""
    value = environment.get(name)
    if not value:
        raise NotStarted(f"{name} is not set; run this command only in pods that Spark creates")
    return value


def class_path(environment: Environment) -> str:
    """Return the class path of an executor: settings first, then the user's classes, then Spark's."""
    parts = (
        environment.get("HADOOP_CONF_DIR"),
        environment.get("SPARK_CONF_DIR"),
        environment.get("SPARK_CLASSPATH"),
        str(Path(environment["SPARK_HOME"], "jars", "*")),
        environment.get("SPARK_DIST_CLASSPATH"),
    )
    return os.pathsep.join(part for part in parts if part)


def java_options(environment: Environment) -> list[str]:
    """Return the JVM options for an executor, from SPARK_JAVA_OPT_0, SPARK_JAVA_OPT_1 etc., in this order."""
    found = ((re.fullmatch(r"SPARK_JAVA_OPT_(\d+)", name), value) for name, value in environment.items())
    return [value for _, value in sorted((int(match[1]), value) for match, value in found if match)]


def executor(environment: Environment) -> Start:
    """Return the command of an executor."""
    memory = needed(environment, "SPARK_EXECUTOR_MEMORY")
    options = [word for name, variable in EXECUTOR for word in (name, needed(environment, variable))]
    return Start(
        (
            java(environment),
            *java_options(environment),
            f"-Xms{memory}",
            f"-Xmx{memory}",
            "-cp",
            class_path(environment),
            BACKEND,
            *options,
        ),
        dict(environment),
    )


def driver_options(environment: Environment, given: Sequence[str]) -> tuple[str, ...]:
    """Return the options of spark-submit in a driver's pod, where the application runs in client mode."""
    address = needed(environment, "SPARK_DRIVER_BIND_ADDRESS")
    return (
        "--conf",
        f"spark.driver.bindAddress={address}",
        "--conf",
        f"spark.executorEnv.SPARK_DRIVER_POD_IP={address}",
        "--deploy-mode",
        "client",
        *given,
    )


def launcher(environment: Environment, options: Sequence[str]) -> tuple[str, ...]:
    """Return the command of Spark's launcher, which builds the command of spark-submit: memory, options, class path."""
    jars = str(Path(environment["SPARK_HOME"], "jars", "*"))
    return (java(environment), *LAUNCHER, "-cp", jars, "org.apache.spark.launcher.Main", SUBMIT, *options)


def launched(output: bytes, environment: Environment) -> Start:
    """Parse the output of the launcher: arguments that end with NUL, after a line with NUL that ends messages of Java.

    The arguments may start with `env NAME=VALUE ...`.
    """
    words = output.decode().partition("\0\n")[2].split("\0")[:-1]
    variables: dict[str, str] = {}
    if words[:1] == ["env"]:
        words = words[1:]
        while words and re.match(r"\w+=", words[0]):
            name, _, value = words.pop(0).partition("=")
            variables[name] = value
    if not words:
        raise NotStarted("Spark's launcher returned no command")
    return Start(tuple(words), {**environment, **variables})


def submit(environment: Environment, options: Sequence[str]) -> Start:
    """Return the command of spark-submit."""
    done = subprocess.run(  # noqa: S603 - Spark's launcher
        launcher(environment, options), stdout=subprocess.PIPE, env=dict(environment), check=False
    )
    if done.returncode:
        raise NotStarted(f"Spark's launcher failed with status {done.returncode}")
    return launched(done.stdout, environment)


def last_phase(lines: Iterable[bytes]) -> str:
    """Copy the log of spark-submit to standard error, and return the driver's last phase; empty if it did not wait."""
    phase = ""
    for line in lines:
        sys.stderr.buffer.write(line)
        sys.stderr.buffer.flush()
        if match := PHASE.search(line):
            phase = match[1].decode()
    return phase


def follow(submission: Start) -> int:
    """Run spark-submit until the driver has ended; the exit status is 0 only if the driver succeeded."""
    with subprocess.Popen(submission.words, env=submission.environment, stderr=subprocess.PIPE) as process:  # noqa: S603 - Spark
        former = signal.signal(signal.SIGTERM, lambda *_: process.terminate())
        assert process.stderr is not None
        phase = last_phase(process.stderr)
    signal.signal(signal.SIGTERM, former)
    status = int(process.returncode)
    if status or phase in {"", "Succeeded"}:
        return abs(status)
    sys.stderr.write(f"sparkentry: driver did not succeed (phase {phase}); see the log of its pod\n")
    return 1


COMMANDS: Final[dict[str, Callable[[Environment, Sequence[str]], Start]]] = {
    "driver": lambda environment, options: submit(environment, driver_options(environment, options)),
    "executor": lambda environment, _: executor(environment),
    "spark-submit": submit,
    SUBMIT_AND_WAIT: submit,
}


def start(name: str, arguments: Sequence[str], environment: Environment) -> Start:
    """Return the program to start, by the name under which this file was called and its arguments."""
    words = [name, *arguments] if name in COMMANDS else list(arguments)
    if not words:
        raise NotStarted(f"no command; give a program, or one of {', '.join(COMMANDS)}")
    command = COMMANDS.get(words[0])
    return command(environment, words[1:]) if command else Start(tuple(words), dict(environment))


def with_home(environment: Environment) -> dict[str, str]:
    """Return the environment with the variables that Spark's shell scripts would set.

    SPARK_HOME defaults to the package of PySpark. The launcher needs SPARK_SCALA_VERSION.
    """
    spec = importlib.util.find_spec("pyspark")
    home = environment.get("SPARK_HOME") or (str(Path(spec.origin).parent) if spec and spec.origin else "")
    core = next(iter(sorted(Path(home, "jars").glob("spark-core_*-*.jar"))), None)
    scala = {"SPARK_SCALA_VERSION": core.name.removeprefix("spark-core_").partition("-")[0]} if core else {}
    return {**scala, **environment, "SPARK_HOME": home}


def main() -> None:
    """Start the program, by replacing this process."""
    try:
        found = start(Path(sys.argv[0]).name, sys.argv[1:], with_home(os.environ))
        if sys.argv[1:2] == [SUBMIT_AND_WAIT]:
            sys.exit(follow(found))
        os.execvpe(found.words[0], found.words, found.environment)  # noqa: S606 - the command of the container
    except (NotStarted, OSError) as error:
        sys.exit(f"sparkentry: {error}")


if __name__ == "__main__":
    main()
