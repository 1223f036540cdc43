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
| `delay`, `retry`, `ttl`, `replicate`, `maxlen` | integer | - | optional, times in seconds; null is the default |
| `key` | string or binary | - | optional, for `mode` `deduplicated`; not null |

The module does not import Spark, so every task can import it.
"""

from __future__ import annotations

from typing import Final

SOURCE: Final = "queue string, id string, body binary"
METADATA: Final = "ctime timestamp, nacks int, additional_deliveries int, node string"
STATE: Final = "state string"

TEXT: Final = ("string",)
BYTES: Final = ("string", "binary")
WHOLE: Final = ("tinyint", "smallint", "int", "bigint")

SINK: Final[dict[str, tuple[str, ...]]] = {
    "queue": TEXT,
    "body": BYTES,
    "delay": WHOLE,
    "retry": WHOLE,
    "ttl": WHOLE,
    "replicate": WHOLE,
    "maxlen": WHOLE,
    "key": BYTES,
}
"""The columns that the sink accepts, with their types (`DataType.simpleString`)."""
IGNORED: Final = frozenset({"id", "ctime", "nacks", "additional_deliveries", "node", "state"})
"""Columns of the source that the sink ignores, because a new job gets its own values."""


def source_schema(*, metadata: bool, state: bool) -> str:
    """Return the schema of the source, as DDL."""
    parts = [SOURCE]
    if metadata:
        parts.append(METADATA)
        if state:
            parts.append(STATE)
    return ", ".join(parts)
