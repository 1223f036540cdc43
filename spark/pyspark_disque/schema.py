"""The columns that the source provides and that the sink accepts.

| column | type | source | sink |
| --- | --- | --- | --- |
| `queue` | string | always | required without the option `queue` |
| `id` | string | always | ignored, so that rows of the source can be written |
| `body` | binary | always | required, binary or string |
| `ctime` | timestamp | with `includeMetadata` | ignored |
| `nacks`, `additional_deliveries` | int | with `includeMetadata` | ignored |
| `node` | string, the ID of the node | with `includeMetadata` | ignored |
| `state` | string | batch reads with `includeMetadata` | ignored |
| `priority` | int | with `includeAttributes` | optional; null is the default |
| `meta` | binary | with `includeAttributes` | optional, binary or string |
| `attempts`, `attempts_before` | int | with `includeAttributes` | ignored |
| `reason`, `origin_queue` | string | with `includeAttributes` | ignored |
| `dead_since` | timestamp | with `includeAttributes` | ignored |
| `delay`, `retry`, `ttl`, `replicate`, `maxlen` | integer | - | optional, times in seconds; null is the default |
| `key` | string or binary | - | optional, for `mode` `deduplicated`; not null |
| `job_id` | string | - | optional, the ID of the new job; not null |
| `retain` | integer | - | optional, seconds |
| `after` | array of strings, or string | - | optional, the IDs of the parents; null or empty for none |
| `otherwise` | string | - | optional, `dead`, `run` or `drop`; for rows with parents |

The module does not import Spark, so every task can import it.
"""

from __future__ import annotations

from typing import Final

SOURCE: Final = "queue string, id string, body binary"
METADATA: Final = "ctime timestamp, nacks int, additional_deliveries int, node string"
STATE: Final = "state string"
ATTRIBUTES: Final = (
    "priority int, meta binary, attempts int, attempts_before int, reason string, origin_queue string, "
    "dead_since timestamp"
)

TEXT: Final = ("string",)
BYTES: Final = ("string", "binary")
WHOLE: Final = ("tinyint", "smallint", "int", "bigint")
IDS: Final = ("array<string>", "string")

SINK: Final[dict[str, tuple[str, ...]]] = {
    "queue": TEXT,
    "body": BYTES,
    "delay": WHOLE,
    "retry": WHOLE,
    "ttl": WHOLE,
    "replicate": WHOLE,
    "maxlen": WHOLE,
    "key": BYTES,
    "priority": WHOLE,
    "meta": BYTES,
    "job_id": TEXT,
    "retain": WHOLE,
    "after": IDS,
    "otherwise": TEXT,
}
"""The columns that the sink accepts, with their types (`DataType.simpleString`)."""
IGNORED: Final = frozenset(
    {
        *("id", "ctime", "nacks", "additional_deliveries", "node", "state"),
        *("attempts", "attempts_before", "reason", "origin_queue", "dead_since"),
    }
)
"""Columns of the source that the sink ignores, because a new job gets its own values."""


def source_schema(*, metadata: bool, state: bool, attributes: bool = False) -> str:
    """Return the schema of the source, as DDL."""
    parts = [SOURCE]
    if metadata:
        parts.append(METADATA)
        if state:
            parts.append(STATE)
    if attributes:
        parts.append(ATTRIBUTES)
    return ", ".join(parts)
