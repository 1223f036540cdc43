"""A Spark driver in a separate process, which a test can kill: `python -m support.sparkdriver '{"json": ...}'`.

It runs one streaming query that writes the rows of each batch as JSON lines, to a file for each attempt, and hangs at
the step that the test sets. The checkpoint and the files show its progress.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from pyspark.sql import DataFrame, Row

from support.spark import local_spark

Step: TypeAlias = Literal[
    "before the tasks", "in a task", "after the tasks", "after the commit", "an executor dies", "nowhere"
]
NEVER_S = 3600


@dataclass(frozen=True)
class Plan:
    """The parameters of the driver: the options of the source, the directory, and the step at which to hang."""

    options: dict[str, str]
    directory: str
    hang: Step = "nowhere"
    available_now: bool = True
    master: str = "local[2]"
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def checkpoint(self) -> Path:
        """The checkpoint directory of Spark."""
        return Path(self.directory) / "checkpoint"

    @property
    def rows(self) -> Path:
        """The directory with a file for each attempt of a batch."""
        return Path(self.directory) / "rows"

    @property
    def marker(self) -> Path:
        """The file that exists once the driver hangs."""
        return Path(self.directory) / "hangs"

    def is_logged(self, log: Literal["offsets", "commits"], batch: int) -> bool:
        """Return whether Spark wrote a batch to one of its logs."""
        return (self.checkpoint / log / str(batch)).exists()

    def written(self) -> list[dict[str, str]]:
        """Return the rows of all attempts."""
        files = sorted(self.rows.glob("*.json"))
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]


class DriverProcess:
    """The driver process; `kill` kills it together with its JVM and workers."""

    def __init__(self, plan: Plan) -> None:
        plan.marker.unlink(missing_ok=True)
        plan.rows.mkdir(exist_ok=True)
        self.log = Path(plan.directory) / "driver.log"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "support.sparkdriver", json.dumps(asdict(plan))],
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
            )

    def kill(self) -> None:
        """Kill the process group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    @property
    def is_running(self) -> bool:
        """Whether the process is running."""
        return self.process.poll() is None


@contextlib.contextmanager
def running(plan: Plan) -> Iterator[DriverProcess]:
    """Start a driver, and kill it at the end of the context."""
    driver = DriverProcess(plan)
    try:
        yield driver
    finally:
        driver.kill()


def main(plan: Plan) -> None:
    """Run the query to its end."""
    with local_spark(plan.master, **plan.settings) as spark:
        frame = spark.readStream.format("disque").options(**plan.options).load()
        writer = frame.writeStream.foreachBatch(lambda rows, number: handle(plan, rows, number))
        writer = writer.option("checkpointLocation", str(plan.checkpoint))
        hour = plan.hang == "after the commit"
        how = {"processingTime": "1 hour"} if hour else {"availableNow": True} if plan.available_now else {}
        writer.trigger(**how).start().awaitTermination()


def handle(plan: Plan, rows: DataFrame, number: int) -> None:
    """Write one batch, or hang."""
    marker = plan.marker
    if plan.hang == "before the tasks":
        hang(marker)
    if plan.hang == "in a task":
        rows.foreachPartition(lambda part: hang_with(marker, part))
    if plan.hang == "an executor dies":
        rows.foreachPartition(lambda part: die_once(marker, part))
    lines = [json.dumps({"id": row.id, "body": bytes(row.body).decode()}) for row in rows.collect()]
    (plan.rows / f"{number:06}-{os.getpid()}.json").write_text("".join(f"{line}\n" for line in lines))
    if plan.hang == "after the tasks":
        hang(marker)


def hang_with(marker: Path, part: Iterator[Row]) -> None:
    """Hang after reading a row."""
    next(part, None)
    hang(marker)


def die_once(marker: Path, part: Iterator[Row]) -> None:
    """Kill the executor of this task, once."""
    next(part, None)
    with contextlib.suppress(FileExistsError):
        marker.touch(exist_ok=False)
        os.kill(executor_of(os.getpid()), signal.SIGKILL)
        threading.Event().wait(NEVER_S)


def executor_of(pid: int) -> int:
    """Return the process ID of the JVM that started a Python worker."""
    while "java" not in Path(f"/proc/{pid}/comm").read_text():
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return pid


def hang(marker: Path) -> None:
    """Create the marker, and wait until the process is killed."""
    marker.touch()
    threading.Event().wait(NEVER_S)


if __name__ == "__main__":
    main(Plan(**json.loads(sys.argv[1])))
