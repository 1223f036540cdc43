"""Makes PySpark small: what neither the connector nor jobs of SQL, streams and files on Kubernetes load goes.

    python trimspark.py ENVIRONMENT

Most of it is machine code for other machines, which Java's libraries carry inside them; the rest is machine learning,
Hive, the Scala shell, YARN, and scripts for a shell. Comes before `trim.py`.
"""

from __future__ import annotations

import os
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Final

JARS: Final = (
    # Machine learning and graphs, with the mathematics below them.
    "JTransforms", "JLargeArrays", "algebra_", "arpack", "blas", "breeze", "cats-kernel", "lapack",
    "spark-graphx", "spark-mllib", "spire",
    # Hive's tables and its server. What ORC has of Hive (hive-storage-api) stays.
    "datanucleus", "derby", "hive-beeline", "hive-cli", "hive-common", "hive-exec", "hive-jdbc",
    "hive-metastore", "hive-serde", "hive-service", "hive-shims", "javax.jdo", "jdo-api", "libthrift", "libfb303",
    "spark-hive",
    # The Scala shell.
    "jline", "scala-compiler", "spark-repl",
    # Another kind of cluster.
    "spark-yarn",
)  # fmt: skip
"""How the names of jars begin that are dropped."""
REST: Final = (
    "bin/*",
    "data",
    "examples",
    "jars/connect-repl",
    "ml",
    "mllib",
    "pandas",  # Spark's copy of the interface of pandas, which is not here
    "sbin",
)
"""Of the package's folder."""
EMPTIED: Final = "python/lib/*.zip"
"""The same modules once more, which are found before those with bytecode. Spark only wants that the files are there."""
ARROW: Final = ("*flight*", "*s3*", "include", "src")
"""Of PyArrow's: remote procedures, an object store (Spark reaches those by Java), sources."""

NATIVE: Final = (".dll", ".dylib", ".jnilib", ".so")
ELF: Final = b"\x7fELF"
HEADER: Final = 20
"""Bytes that tell what machine an ELF file is for."""


def machine(header: bytes) -> tuple[int, int, bytes]:
    """For what an ELF file is made: 32 or 64 bits, byte order, processor."""
    return header[4], header[5], header[18:HEADER]


def is_foreign(name: str, header: bytes, here: bytes) -> bool:
    """Whether a file in a jar is machine code that can not run beside a program that begins with `here`."""
    if header.startswith(ELF):
        return machine(header) != machine(here) or "musl" in name
    return name.endswith(NATIVE)


def drop_foreign(jar: Path, here: bytes) -> None:
    """Write a jar anew without machine code for other machines, if it has any."""
    with zipfile.ZipFile(jar) as archive:
        foreign = set()
        for entry in archive.infolist():
            with archive.open(entry) as file:
                if is_foreign(entry.filename, file.read(HEADER), here):
                    foreign.add(entry.filename)
        if not foreign:
            return
        smaller = jar.with_suffix(".smaller")
        with zipfile.ZipFile(smaller, "w") as target:
            for entry in archive.infolist():
                if entry.filename not in foreign:
                    target.writestr(entry, archive.read(entry))
    smaller.replace(jar)


def remove(path: Path) -> None:
    """A file or a folder."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def is_script(path: Path) -> bool:
    """Whether a file is for a shell."""
    with path.open("rb") as file:
        return path.suffix == ".cmd" or b"bash" in file.readline(80)


def main() -> None:
    """Trim PySpark in the environment that the argument names."""
    with Path(sys.executable).open("rb") as program:
        here = program.read(HEADER)
    environment = Path(sys.argv[1])
    for path in filter(is_script, sorted(path for path in (environment / "bin").iterdir() if path.is_file())):
        path.unlink()
    for packages in (environment / "lib").glob("python3*/site-packages"):
        for pattern in REST:
            for path in packages.glob(f"pyspark/{pattern}"):
                remove(path)
        for pattern in ARROW:
            for path in packages.glob(f"pyarrow/{pattern}"):
                remove(path)
        for path in packages.glob(f"pyspark/{EMPTIED}"):
            zipfile.ZipFile(path, "w").close()
        for jar in packages.glob("pyspark/jars/*.jar"):
            if jar.name.startswith(JARS):
                jar.unlink()
            else:
                drop_foreign(jar, here)
        # PySpark starts its Java by this.
        submit = packages / "pyspark" / "bin" / "spark-submit"
        submit.parent.mkdir(exist_ok=True)
        submit.symlink_to(os.path.relpath(environment / "bin" / "spark-submit", submit.parent))


if __name__ == "__main__":
    main()
