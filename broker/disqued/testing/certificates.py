"""Makes certificates with the `openssl` command: authorities, and certificates that they sign."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

_NEW_KEY: Final = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
LOCAL: Final = "DNS:localhost,IP:127.0.0.1"


def openssl(directory: Path, *arguments: str) -> None:
    """Run `openssl` in a directory.

    Raises:
        CalledProcessError: it failed.
    """
    command = ["openssl", *arguments]
    subprocess.run(command, cwd=directory, check=True, capture_output=True, timeout=30)  # noqa: S603 - arguments of ours


class Authority:
    """A certificate authority whose files are in `directory`; `certificate` is the path of its certificate."""

    def __init__(self, directory: Path, name: str = "ca", *, days: int = 30) -> None:
        """Make the authority, which is valid for so many days."""
        self.directory = directory
        self.name = name
        self.certificate = directory / f"{name}.crt"
        _sign_self(directory, name, days)

    def issue(self, name: str, *, names: str = LOCAL, days: int = 30) -> tuple[Path, Path]:
        """Make a certificate for some names and days; returns the paths of it and of its key."""
        openssl(
            self.directory,
            *("req", *_NEW_KEY, "-keyout", f"{name}.key", "-out", f"{name}.csr"),
            *("-subj", f"/CN={name}", "-addext", f"subjectAltName={names}"),
        )
        openssl(
            self.directory,
            *("x509", "-req", "-in", f"{name}.csr", "-CA", f"{self.name}.crt", "-CAkey", f"{self.name}.key"),
            *("-CAcreateserial", "-copy_extensions", "copy", "-days", str(days), "-out", f"{name}.crt"),
        )
        return self.directory / f"{name}.crt", self.directory / f"{name}.key"

    def lock(self, name: str, password: str) -> Path:
        """Encrypt a copy of the key of a certificate with a password; returns the path of the copy."""
        ways = ("-in", f"{name}.key", "-aes256", "-passout", f"pass:{password}", "-out", f"{name}.locked")
        openssl(self.directory, "pkey", *ways)
        return self.directory / f"{name}.locked"


def _sign_self(directory: Path, name: str, days: int) -> None:
    request = ("-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
    openssl(directory, *("req", *_NEW_KEY, *request, "-addext", "basicConstraints=critical,CA:TRUE"))
    sign = ("-in", f"{name}.csr", "-key", f"{name}.key", "-copy_extensions", "copy", "-days", str(days))
    openssl(directory, *("x509", "-req", *sign, "-out", f"{name}.crt"))
