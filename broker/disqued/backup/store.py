"""Where backups are: an S3-compatible store or another one that obstore knows, or a directory.

Credentials and settings of S3 come from the environment, by the names that AWS uses (`AWS_ACCESS_KEY_ID`,
`AWS_ENDPOINT_URL`, `AWS_SERVER_SIDE_ENCRYPTION`, ...).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import obstore
from obstore.exceptions import BaseError, NotFoundError
from obstore.store import LocalStore, from_url

from disqued.backup.errors import BackupError

PART_BYTES: Final = 8 << 20
"""The size of a part of an upload. S3 allows 10,000 parts, hence 80 GB for each member."""
PARTS_AT_A_TIME: Final = 2


class Store:
    """One place for backups, by its URL (`s3://bucket/prefix`, `file:///path`) or by the path of a directory."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.directory = _directory_of(url)
        try:
            self._store = from_url(url) if self.directory is None else LocalStore(self.directory, mkdir=True)
        except (BaseError, ValueError, OSError) as error:
            raise BackupError(f"cannot open {url}: {_line(error)}") from error

    def write(self, path: str, parts: Iterable[bytes]) -> None:
        """Write an object; if `parts` or the store fails, there is none."""
        try:
            obstore.put(
                self._store, path, parts, chunk_size=PART_BYTES, max_concurrency=PARTS_AT_A_TIME, use_multipart=True
            )
        except BaseError as error:
            raise BackupError(f"cannot write {path} to {self.url}: {_line(error)}") from error

    def write_small(self, path: str, data: bytes) -> None:
        """Write a small object."""
        try:
            obstore.put(self._store, path, data, use_multipart=False)
        except BaseError as error:
            raise BackupError(f"cannot write {path} to {self.url}: {_line(error)}") from error

    def read(self, path: str) -> Iterator[bytes]:
        """Yield an object in parts."""
        try:
            for part in obstore.get(self._store, path).stream():
                yield bytes(part)
        except NotFoundError as error:
            raise BackupError(f"{path} does not exist in {self.url}") from error
        except BaseError as error:
            raise BackupError(f"cannot read {path} from {self.url}: {_line(error)}") from error

    def objects(self) -> dict[str, float]:
        """All objects: when each was written, in unix seconds, by path."""
        try:
            return {
                found["path"]: found["last_modified"].timestamp()
                for batch in obstore.list(self._store)
                for found in batch
            }
        except BaseError as error:
            raise BackupError(f"cannot list {self.url}: {_line(error)}") from error

    def delete(self, paths: list[str]) -> None:
        """Delete objects."""
        try:
            obstore.delete(self._store, paths)
        except BaseError as error:
            raise BackupError(f"cannot remove objects of {self.url}: {_line(error)}") from error
        if self.directory is not None:
            for folder in {(self.directory / path).parent for path in paths} - {self.directory}:
                if not any(folder.iterdir()):
                    folder.rmdir()

    def settle(self, paths: Iterable[str]) -> None:
        """Make sure that objects survive a power loss; a store other than a directory has done that."""
        if self.directory is None:
            return
        files = [self.directory / path for path in paths]
        for path in (*files, *{file.parent for file in files}, self.directory):
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _line(error: Exception) -> str:
    """The first line of an error; stores add many lines about its cause."""
    return str(error).partition("\n")[0]


def _directory_of(url: str) -> Path | None:
    """The directory that a URL or a path names; None for other stores."""
    if url.startswith("file://"):
        return Path(url.removeprefix("file://"))
    return None if "://" in url else Path(url).absolute()
