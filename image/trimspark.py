"""Reduces the size of PySpark: removes what the connector and jobs with SQL, streams and files do not load.

    python trimspark.py ENVIRONMENT

Most of this is machine code for other platforms in Java libraries; the rest is machine learning, Hive, the Scala shell,
YARN and shell scripts. Run it before `trim.py`.
"""

from __future__ import annotations

import os
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Final

JARS: Final = (
    # Machine learning and graphs, with their math libraries.
    "JTransforms", "JLargeArrays", "algebra_", "arpack", "blas", "breeze", "cats-kernel", "lapack",
    "spark-graphx", "spark-mllib", "spire",
    # Hive's tables and server. ORC needs hive-storage-api, which is kept.
    "datanucleus", "derby", "hive-beeline", "hive-cli", "hive-common", "hive-exec", "hive-jdbc",
    "hive-metastore", "hive-serde", "hive-service", "hive-shims", "javax.jdo", "jdo-api", "libthrift", "libfb303",
    "spark-hive",
    # The Scala shell.
    "jline", "scala-compiler", "spark-repl",
    # Another cluster manager.
    "spark-yarn",
)  # fmt: skip
"""Prefixes of the names of jars that are removed."""
REST: Final = (
    "bin/*",
    "data",
    "examples",
    "jars/connect-repl",
    "ml",
    "mllib",
    "pandas",  # Spark's pandas API; pandas is not installed
    "sbin",
)
"""Patterns of other paths in the package that are removed."""
EMPTIED: Final = "python/lib/*.zip"
"""Copies of the modules, which Python would find before those with bytecode. Spark requires that the files exist."""
ARROW: Final = ("*flight*", "*s3*", "include", "src")
"""Parts of PyArrow that are removed: remote procedure calls, object stores (Spark uses Java for these), sources."""

NATIVE: Final = (".dll", ".dylib", ".jnilib", ".so")
ELF: Final = b"\x7fELF"
HEADER: Final = 20
"""Length of the part of an ELF header that identifies the platform."""


def platform(header: bytes) -> tuple[int, int, bytes]:
    """Return the platform of an ELF file: word size, byte order and processor."""
    return header[4], header[5], header[18:HEADER]


def is_foreign(name: str, header: bytes, here: bytes) -> bool:
    """Return whether a file in a jar is machine code for another platform than that of the ELF header `here`."""
    if header.startswith(ELF):
        return platform(header) != platform(here) or "musl" in name
    return name.endswith(NATIVE)


def drop_foreign(jar: Path, here: bytes) -> None:
    """Rewrite a jar without machine code for other platforms, if it contains any."""
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
    """Remove a file or a folder."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def is_script(path: Path) -> bool:
    """Return whether a file is a shell script."""
    with path.open("rb") as file:
        return path.suffix == ".cmd" or b"bash" in file.readline(80)


def main() -> None:
    """Trim PySpark in the environment on the command line."""
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
        # PySpark starts Java with this program.
        submit = packages / "pyspark" / "bin" / "spark-submit"
        submit.parent.mkdir(exist_ok=True)
        submit.symlink_to(os.path.relpath(environment / "bin" / "spark-submit", submit.parent))


if __name__ == "__main__":
    main()
