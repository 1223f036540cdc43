"""The secrets of a cluster: the file with them, and the proofs that a node knows one of them.

The file has one secret per line. While a cluster changes to a new secret it has two, of which the first is preferred. A
proof is an HMAC over random numbers of both nodes, so it is of no use on another connection.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from disqued.core.host.host import Host

MOST: Final = 2
SHORTEST_BYTES: Final = 16
LONGEST_BYTES: Final = 512
NONCE_BYTES: Final = 32
PROOF_BYTES: Final = 32
ACCEPTOR: Final = b"disqued bus acceptor 1"
DIALLER: Final = b"disqued bus dialler 1"
"""What the proofs of the two ends begin with, so that neither can be sent back as the other one."""


class SecretFileError(ValueError):
    """The file with the secrets cannot be used; the text says why."""


def load(host: Host, path: str) -> tuple[bytes, ...]:
    """The secrets in a file, the preferred one first; none without a path.

    Raises:
        SecretFileError: the file cannot be read or does not have one or two secrets.
    """
    if not path:
        return ()
    try:
        return parse(host.read_secret(path))
    except OSError as error:
        raise SecretFileError(f"cannot read cluster-secret-file {path}: {error.strerror or error}") from error
    except ValueError as error:
        raise SecretFileError(f"cluster-secret-file {path}: {error}") from error


def parse(content: bytes) -> tuple[bytes, ...]:
    """The secrets in the content of a file. Raises ValueError, without the content."""
    secrets = tuple(line for line in map(bytes.strip, content.splitlines()) if line)
    if not 1 <= len(secrets) <= MOST:
        raise ValueError(
            f"expected one secret, or two during a rotation, each on a line of its own; got {len(secrets)}"
        )
    for number, secret in enumerate(secrets, 1):
        if not SHORTEST_BYTES <= len(secret) <= LONGEST_BYTES:
            raise ValueError(
                f"secret {number} has {len(secret)} bytes, expected {SHORTEST_BYTES} to {LONGEST_BYTES}; "
                "create one with: openssl rand -hex 32"
            )
    return secrets


def prove(secret: bytes, end: bytes, nonces: bytes, dialler: bytes, acceptor: bytes) -> bytes:
    """The proof of one end, `ACCEPTOR` or `DIALLER`. All parts after `end` have fixed lengths."""
    return hmac.digest(secret, end + nonces + dialler + acceptor, hashlib.sha256)


def proven_with(
    secrets: tuple[bytes, ...], proofs: list[bytes], end: bytes, nonces: bytes, dialler: bytes, acceptor: bytes
) -> bytes:
    """The secret that one of the proofs was made with; empty if it is none of these. Compares in constant time."""
    found = b""
    for secret in secrets:
        expected = prove(secret, end, nonces, dialler, acceptor)
        for proof in proofs:
            if hmac.compare_digest(expected, proof) and not found:
                found = secret
    return found
