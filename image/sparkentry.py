#!/opt/disque/bin/python3
"""What the image `disqued-spark` starts: Spark's driver, its executors, spark-submit, or any program that is named.

    sparkentry driver OPTION...    what Spark has the pod of a driver do (cluster mode): spark-submit, on this machine
    sparkentry executor            and the pods of executors, which are told all they need by variables
    spark-submit OPTION...         as everywhere; this file under that name, since Spark's own needs Bash
    sparkentry submit OPTION...    the same, in cluster mode, and fails when the driver does: spark-submit does not
    sparkentry PROGRAM ...         anything else

The package of PySpark has Spark's side of it (`spark-kubernetes`), and no image. Which words and variables Spark uses
is said by its classes `DriverCommandFeatureStep`, `BasicExecutorFeatureStep` and `KubernetesExecutorBackend`. Each
command but `submit` takes the place of this process, so signals reach it: Java ends in order at SIGTERM.
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
"""For Spark's launcher, which only makes up a command line."""
EXECUTOR: Final = (
    ("--driver-url", "SPARK_DRIVER_URL"),
    ("--executor-id", "SPARK_EXECUTOR_ID"),
    ("--cores", "SPARK_EXECUTOR_CORES"),
    ("--app-id", "SPARK_APPLICATION_ID"),
    ("--hostname", "SPARK_EXECUTOR_POD_IP"),
    ("--resourceProfileId", "SPARK_RESOURCE_PROFILE_ID"),
    ("--podName", "SPARK_EXECUTOR_POD_NAME"),
)
"""The options of an executor, and the variables of its pod that they come from."""
FOLLOWED: Final = "submit"
PHASE: Final = re.compile(rb"\(phase: (\w+)\)")
"""In the log of spark-submit while it waits for the driver."""

Environment = Mapping[str, str]


class NotStarted(Exception):
    """Why there is nothing to start, in words for who reads the log of the pod."""


@dataclass(frozen=True)
class Start:
    """A program to become, and its variables."""

    words: tuple[str, ...]
    environment: dict[str, str]


def java(environment: Environment) -> str:
    """The program `java`: that of JAVA_HOME, or the first one of the PATH."""
    home = environment.get("JAVA_HOME")
    return str(Path(home, "bin", "java")) if home else "java"


def needed(environment: Environment, name: str) -> str:
    """A variable that Spark sets in the pods it makes."""
    value = environment.get(name)
    if not value:
        raise NotStarted(f"{name} is not set: this is for the pods that Spark makes, which have it")
    return value


def class_path(environment: Environment) -> str:
    """Where an executor finds classes: settings first, then what the user adds, then Spark."""
    parts = (
        environment.get("HADOOP_CONF_DIR"),
        environment.get("SPARK_CONF_DIR"),
        environment.get("SPARK_CLASSPATH"),
        str(Path(environment["SPARK_HOME"], "jars", "*")),
        environment.get("SPARK_DIST_CLASSPATH"),
    )
    return os.pathsep.join(part for part in parts if part)


def java_options(environment: Environment) -> list[str]:
    """What Spark wants to tell the Java of an executor: SPARK_JAVA_OPT_0 and so on, in their order."""
    found = ((re.fullmatch(r"SPARK_JAVA_OPT_(\d+)", name), value) for name, value in environment.items())
    return [value for _, value in sorted((int(match[1]), value) for match, value in found if match)]


def executor(environment: Environment) -> Start:
    """The command of an executor."""
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
    """The options of spark-submit in the pod of a driver, which is now where the application itself runs."""
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
    """Spark's own program that makes the command of spark-submit: memory, options of Java, class path."""
    jars = str(Path(environment["SPARK_HOME"], "jars", "*"))
    return (java(environment), *LAUNCHER, "-cp", jars, "org.apache.spark.launcher.Main", SUBMIT, *options)


def launched(output: bytes, environment: Environment) -> Start:
    """What the launcher answered: words that end with NUL, after a line with NUL that ends what Java itself may say.

    They may begin with `env NAME=VALUE ...`.
    """
    words = output.decode().partition("\0\n")[2].split("\0")[:-1]
    variables: dict[str, str] = {}
    if words[:1] == ["env"]:
        words = words[1:]
        while words and re.match(r"\w+=", words[0]):
            name, _, value = words.pop(0).partition("=")
            variables[name] = value
    if not words:
        raise NotStarted("Spark's launcher gave no command")
    return Start(tuple(words), {**environment, **variables})


def submit(environment: Environment, options: Sequence[str]) -> Start:
    """The command of spark-submit."""
    done = subprocess.run(  # noqa: S603 - Spark's launcher
        launcher(environment, options), stdout=subprocess.PIPE, env=dict(environment), check=False
    )
    if done.returncode:
        raise NotStarted(f"Spark's launcher ended with status {done.returncode}")
    return launched(done.stdout, environment)


def last_phase(lines: Iterable[bytes]) -> str:
    """What became of the driver, by the log of spark-submit, which is passed on; empty when nobody waited for it."""
    phase = ""
    for line in lines:
        sys.stderr.buffer.write(line)
        sys.stderr.buffer.flush()
        if match := PHASE.search(line):
            phase = match[1].decode()
    return phase


def follow(submission: Start) -> int:
    """Run spark-submit until the driver has ended; the exit status, which is that of the driver's fate."""
    with subprocess.Popen(submission.words, env=submission.environment, stderr=subprocess.PIPE) as process:  # noqa: S603 - Spark
        former = signal.signal(signal.SIGTERM, lambda *_: process.terminate())
        assert process.stderr is not None
        phase = last_phase(process.stderr)
    signal.signal(signal.SIGTERM, former)
    status = int(process.returncode)
    if status or phase in {"", "Succeeded"}:
        return abs(status)
    sys.stderr.write(f"sparkentry: the driver did not succeed, it is {phase}: see the log of its pod\n")
    return 1


COMMANDS: Final[dict[str, Callable[[Environment, Sequence[str]], Start]]] = {
    "driver": lambda environment, options: submit(environment, driver_options(environment, options)),
    "executor": lambda environment, _: executor(environment),
    "spark-submit": submit,
    FOLLOWED: submit,
}


def start(name: str, arguments: Sequence[str], environment: Environment) -> Start:
    """What is to run, by the name of this program and its arguments."""
    words = [name, *arguments] if name in COMMANDS else list(arguments)
    if not words:
        raise NotStarted(f"nothing to start: name a program, or one of {', '.join(COMMANDS)}")
    command = COMMANDS.get(words[0])
    return command(environment, words[1:]) if command else Start(tuple(words), dict(environment))


def with_home(environment: Environment) -> dict[str, str]:
    """The environment with what Spark's shell scripts would set.

    SPARK_HOME is the package of PySpark unless it is set; SPARK_SCALA_VERSION the launcher wants.
    """
    spec = importlib.util.find_spec("pyspark")
    home = environment.get("SPARK_HOME") or (str(Path(spec.origin).parent) if spec and spec.origin else "")
    core = next(iter(sorted(Path(home, "jars").glob("spark-core_*-*.jar"))), None)
    scala = {"SPARK_SCALA_VERSION": core.name.removeprefix("spark-core_").partition("-")[0]} if core else {}
    return {**scala, **environment, "SPARK_HOME": home}


def main() -> None:
    """Become what is to run."""
    try:
        found = start(Path(sys.argv[0]).name, sys.argv[1:], with_home(os.environ))
        if sys.argv[1:2] == [FOLLOWED]:
            sys.exit(follow(found))
        os.execvpe(found.words[0], found.words, found.environment)  # noqa: S606 - the command of the container
    except (NotStarted, OSError) as error:
        sys.exit(f"sparkentry: {error}")


if __name__ == "__main__":
    main()
