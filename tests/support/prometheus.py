"""A real Prometheus (Debian's) with shortened times: it scrapes every second, and a minute in rules is a second.

    with Prometheus(directory, [{"job_name": "disque", "static_configs": …}]) as prometheus:
        prometheus.until(lambda: prometheus.ask("up") != [], "a target was scraped")

The durations in rules are shortened, and so is the age in `DisqueQueueStuck`.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from disqued.testing.ports import LOOPBACK, free_port

TIMEOUT_S = 60.0
LOOK_S = 0.25
HOURS_S = 5
"""The duration that replaces an hour in rules."""


def with_short_durations(rules: str) -> str:
    """Rules with shortened durations."""
    rules = rules.replace("> 900", "> 15").replace("> 300", "> 3")
    rules = re.sub(r"\b(\d+)m\b", r"\1s", rules)
    return re.sub(r"\b\d+h\b", f"{HOURS_S}s", rules)


class Prometheus:
    """One process in its own directory. Used as a context."""

    def __init__(self, directory: Path, jobs: Sequence[Mapping[str, Any]], rules: str = "") -> None:
        """`jobs` are the `scrape_configs`, `rules` the text of a rules file."""
        program = shutil.which("prometheus")
        assert program is not None, "prometheus is not installed; check with `shutil.which` first"
        directory.mkdir()
        (directory / "rules.yaml").write_text(rules)
        every_second = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
        config = {"global": every_second, "rule_files": ["rules.yaml"], "scrape_configs": list(jobs)}
        (directory / "prometheus.yaml").write_text(yaml.safe_dump(config))
        self._address = f"{LOOPBACK}:{free_port()}"
        self._log = directory / "log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    program,
                    f"--config.file={directory / 'prometheus.yaml'}",
                    f"--storage.tsdb.path={directory / 'data'}",
                    f"--web.listen-address={self._address}",
                    "--query.lookback-delta=5s",
                    "--log.level=warn",
                ],
                stdout=log,
                stderr=log,
            )

    def ask(self, query: str) -> list[dict[str, Any]]:
        """The current series of a query.

        Raises:
            OSError: Prometheus is starting, or rejects the query.
        """
        words = urllib.parse.urlencode({"query": query})
        with urllib.request.urlopen(f"http://{self._address}/api/v1/query?{words}", timeout=10) as answer:
            result: list[dict[str, Any]] = json.load(answer)["data"]["result"]
            return result

    def has(self, query: str) -> bool:
        """Whether a query has a series now; raises the same errors as `ask`."""
        return bool(self.ask(query))

    def rules(self) -> list[dict[str, Any]]:
        """All rules with their state (`health`, `lastError`)."""
        with urllib.request.urlopen(f"http://{self._address}/api/v1/rules", timeout=10) as answer:
            return [rule for group in json.load(answer)["data"]["groups"] for rule in group["rules"]]

    def firing(self) -> set[str]:
        """The names of the firing alerts."""
        return {series["metric"]["alertname"] for series in self.ask('ALERTS{alertstate="firing"}')}

    def until(self, happened: Callable[[], bool], what: str) -> None:
        """Wait until a condition holds; fails with the log if it does not in time."""
        end_s = time.monotonic() + TIMEOUT_S
        while True:
            assert self._process.poll() is None, self._log.read_text()
            try:
                if happened():
                    return
            except OSError as error:
                trouble = str(error)
            else:
                trouble = ""
            assert time.monotonic() < end_s, f"timed out: {what}. {trouble}"
            time.sleep(LOOK_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait()
