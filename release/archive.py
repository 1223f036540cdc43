"""Archives that are the same for the same files."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Collection, Mapping
from pathlib import Path


def write(path: Path, files: Mapping[str, bytes], executables: Collection[str] = ()) -> None:
    """Write a `.tar.gz` with these files by path."""
    with (
        path.open("wb") as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), 0o755 if name in executables else 0o644
            archive.addfile(entry, io.BytesIO(data))
