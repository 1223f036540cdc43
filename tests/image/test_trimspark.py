"""Removal of unused parts of PySpark in the image."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import trimspark

ROOT = Path(__file__).parents[2]
with Path(sys.executable).open("rb") as program:
    HERE = program.read(trimspark.HEADER)
OTHER = HERE[:18] + bytes(byte ^ 0xFF for byte in HERE[18:])
"""The header of a program for another processor."""


def jar(path: Path, files: dict[str, bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def content(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_only_machine_code_for_other_platforms_is_removed(tmp_path: Path) -> None:
    files = {"META-INF/services/x": b"y", "A.class": b"\xca\xfe\xba\xbe", "linux/liba.so": HERE + b"rest"}
    foreign = {"arm/liba.so": OTHER, "liba-musl.so": HERE, "a.dll": b"MZ", "a.dylib": b"\xcf\xfa\xed\xfe"}
    path = jar(tmp_path / "a.jar", files | foreign)
    trimspark.drop_foreign(path, HERE)
    assert content(path) == files


def test_jar_without_machine_code_is_not_rewritten(tmp_path: Path) -> None:
    path = jar(tmp_path / "a.jar", {"A.class": b"\xca\xfe\xba\xbe"})
    before = path.stat().st_mtime_ns, path.read_bytes()
    trimspark.drop_foreign(path, HERE)
    assert (path.stat().st_mtime_ns, path.read_bytes()) == before


def test_environment_is_trimmed_and_starts_java_with_the_entry_point(tmp_path: Path) -> None:
    packages = tmp_path / "lib" / "python3.11" / "site-packages"
    for name in ("hive-exec-2.jar", "hive-storage-api-2.jar", "spark-sql_2.13-4.jar", "spark-hive_2.13-4.jar"):
        jar(packages / "pyspark" / "jars" / name, {"A.class": b"\xca\xfe\xba\xbe"})
    for name in ("bin/spark-submit", "bin/pyspark", "ml/a.py", "sql/a.py", "python/lib/pyspark.zip"):
        (packages / "pyspark" / name).parent.mkdir(parents=True, exist_ok=True)
        (packages / "pyspark" / name).touch()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "pyspark").write_text("#!/usr/bin/env bash\n")
    (tmp_path / "bin" / "disque").write_text("#!/usr/bin/python3\n")
    subprocess.run([sys.executable, ROOT / "image" / "trimspark.py", tmp_path], check=True)
    assert sorted(path.name for path in (packages / "pyspark" / "jars").iterdir()) == [
        "hive-storage-api-2.jar",
        "spark-sql_2.13-4.jar",
    ]
    assert sorted(path.name for path in (packages / "pyspark").iterdir()) == ["bin", "jars", "python", "sql"]
    assert [path.name for path in (tmp_path / "bin").iterdir()] == ["disque"]
    assert content(packages / "pyspark" / "python" / "lib" / "pyspark.zip") == {}
    submit = packages / "pyspark" / "bin" / "spark-submit"
    assert os.path.normpath(submit.parent / submit.readlink()) == str(tmp_path / "bin" / "spark-submit")


def test_every_pattern_matches_something_in_pyspark() -> None:
    pyspark = pytest.importorskip("pyspark")
    package = Path(pyspark.__file__).parent
    jars = [path.name for path in (package / "jars").iterdir()]
    assert [name for name in trimspark.JARS if not any(jar.startswith(name) for jar in jars)] == []
    assert [pattern for pattern in trimspark.REST if not list(package.glob(pattern))] == []
    assert len(list(package.glob(trimspark.EMPTIED))) == 2
