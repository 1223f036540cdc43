"""The source distributions whose tests run here: pinned, downloaded by pip, unpacked below `build/suites`."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

BUILD: Final = Path(__file__).parents[2] / "build" / "suites"


@dataclass(frozen=True, slots=True)
class Source:
    """A source distribution."""

    name: str
    version: str
    sha256: str

    @property
    def directory(self) -> Path:
        """Where it is unpacked."""
        return BUILD / f"{self.name}-{self.version}"

    def unpack(self) -> Path:
        """Download it unless that was done, and return its directory. Raises CalledProcessError without a network."""
        if not self.directory.exists():
            BUILD.mkdir(parents=True, exist_ok=True)
            pinned = BUILD / f"{self.name}.txt"
            pinned.write_text(f"{self.name}=={self.version} --hash=sha256:{self.sha256}\n")
            pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "download", "--no-deps")
            options = ("--no-binary", ":all:", "--no-build-isolation", "--require-hashes", "--dest", str(BUILD))
            subprocess.run([*pip, *options, "--requirement", str(pinned)], check=True, timeout=300)
            with tarfile.open(BUILD / f"{self.name}-{self.version}.tar.gz") as archive:
                archive.extractall(BUILD, filter="data")
        return self.directory


KOMBU: Final = Source("kombu", "5.7.0", "31e62fdfd2381caa3422f8e02b84a491d9a2180ddda74507b57f4cb1e1c2c2c9")
CELERY: Final = Source("celery", "5.7.0", "6a5dfcf6662287204f009a02002b9e66c83d4105e47ebabdc7079108772fc6f0")
DRAMATIQ: Final = Source("dramatiq", "2.2.1", "f9fbbd2feea27b3fa4085446242a24d86f78288b20c78a93f9f0bdbd7d908cd5")
