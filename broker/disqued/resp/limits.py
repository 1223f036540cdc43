"""Limits of the client protocol, checked before data is buffered (Disque protocol, "Requests")."""

from __future__ import annotations

from typing import Final

MAX_ARGUMENTS: Final = 1024 * 1024
"""Maximum number of arguments of a request."""

MAX_BULK_BYTES: Final = 512 * 1024 * 1024
"""Maximum length of an argument."""

MAX_LINE_BYTES: Final = 64 * 1024
"""Maximum length of an inline request, or of the header of a request or argument."""

MAX_QUERY_BYTES: Final = 1024 * 1024 * 1024
"""Maximum unprocessed input of a client."""

MAX_ARGUMENTS_UNAUTHENTICATED: Final = 10
"""Maximum number of arguments before authentication, as in Redis."""

MAX_BULK_BYTES_UNAUTHENTICATED: Final = 16 * 1024
"""Maximum length of an argument before authentication, as in Redis."""
