"""The pages about files and pipelines: their options are those that there are, their examples say what is shown."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipelines import drain, enqueue, report
from pyspark_disque_aof import options, rows
from support.cluster import RealCluster

pytestmark = pytest.mark.timeout(400)  # a busy machine may take a minute to start Spark

DOCS = Path(__file__).parents[2] / "docs"
AOF = (DOCS / "spark" / "aof.md").read_text(encoding="utf-8")
PIPELINES = (DOCS / "howto" / "pipelines.md").read_text(encoding="utf-8")
COMMANDS = {"disque-enqueue": enqueue, "disque-drain": drain, "disque-report": report}


def examples() -> list[tuple[str, str]]:
    """The commands of the page and what they say, in order."""
    blocks = re.findall(r"```console\n(.*?)```", PIPELINES, re.DOTALL)
    return [(line, said) for block in blocks for line, said in re.findall(r"\$ (.*)\n((?:(?!\$).*\n)*)", block)]


def test_the_page_on_files_lists_every_option_and_every_column() -> None:
    for option in options.OPTIONS:
        assert f"| `{option.name}` | {option.default} | {option.text} |" in AOF
    assert [name for kind in rows.SCHEMAS for name in rows.columns(kind) if f"`{name}`" not in AOF] == []


def test_every_word_of_the_commands_that_the_page_names_exists() -> None:
    words = {
        word for module in COMMANDS.values() for action in module.parser()._actions for word in action.option_strings
    }
    assert set(re.findall(r"(?<![\w-])--[a-z-]+[a-z]", PIPELINES)) <= words | {"--help"}


def test_the_commands_of_the_page_say_what_it_shows(
    spark: SparkSession, nodes: str, cluster: RealCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """All but the report, whose numbers are those of a longer log."""
    monkeypatch.chdir(tmp_path)
    orders = spark.createDataFrame([(1, "tea"), (2, "rice")], "order_id int, item string")
    orders.coalesce(1).write.parquet(f"file:{tmp_path}/orders.parquet")
    shown = [(line, said) for line, said in examples() if not line.startswith("disque-report")]
    assert len(shown) == 3
    for line, said in shown:
        program, *words = shlex.split(line.replace("broker:7711", nodes))
        words = [f"{tmp_path}/{word}" if word in {"orders.parquet", "lake/orders"} else word for word in words]
        capsys.readouterr()
        assert COMMANDS[program].main(words) == 0
        out = capsys.readouterr().out.replace(f"{tmp_path}/", "")
        assert re.sub(r"seconds: .*", "", out) == re.sub(r"seconds: .*", "", said)
    assert cluster.nodes[0].is_running
