"""The times after which jobs are queued again, collected and forgotten."""

from __future__ import annotations

from typing import Final

WILLQUEUE_LEAD_MS: Final = 500
JITTER_MS: Final = 500
"""The width over which requeue times are spread, so that the holders of a job do not all act at once."""
EXPIRY_GRACE_MS: Final = 1000
"""How long a job lives beyond `expire_at_s`, which is rounded down to whole seconds: no job ends before its time.
(The original ends a job that wakes for another reason up to a second early.)"""
COLLECTION_MS: Final = 1000
MAX_COLLECTION_MS: Final = 180_000
"""The time until the holders of an acknowledged job are asked again. It doubles with each attempt."""
MAX_COLLECTIONS: Final = 10
"""Further attempts are not counted."""
SPENT_MS_PER_S: Final = 875
"""When a worker takes a job that has less than this of its retry time left (7/8), the retry time starts again, so that
the job does not come back while the worker has hardly begun. A job that waited less keeps its timer."""
