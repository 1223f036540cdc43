"""Bounds of the client protocol, checked before anything is buffered (Disque protocol, "Requests")."""

from __future__ import annotations

from typing import Final

MAX_ARGUMENTS: Final = 1024 * 1024
"""Arguments of one request."""

MAX_BULK_BYTES: Final = 512 * 1024 * 1024
"""One argument."""

MAX_LINE_BYTES: Final = 64 * 1024
"""An inline request, or the header of a request or argument."""

MAX_QUERY_BYTES: Final = 1024 * 1024 * 1024
"""Input of one client that waits to be run."""

MAX_ARGUMENTS_UNAUTHENTICATED: Final = 10
"""Arguments of one request while a password is awaited, as in Redis."""

MAX_BULK_BYTES_UNAUTHENTICATED: Final = 16 * 1024
"""One argument while a password is awaited, as in Redis."""
