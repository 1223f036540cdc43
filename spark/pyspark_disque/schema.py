"""The columns: what a source gives, and what a sink takes.

| column | type | source | sink |
| --- | --- | --- | --- |
| `queue` | string | always | unless the option `queue` says it |
| `id` | string | always | ignored, so that what was read can be written |
| `body` | binary | always | required, binary or string |
| `ctime` | timestamp | with `includeMetadata` | ignored |
| `nacks`, `additional_deliveries` | int | with `includeMetadata` | ignored |
| `node` | string, the ID of the node | with `includeMetadata` | ignored |
| `state` | string | batch reads with `includeMetadata` | ignored |
| `delay`, `retry`, `ttl`, `replicate`, `maxlen` | whole number | - | optional, times in seconds; null is the option |
| `key` | string or binary | - | optional, for `mode` `deduplicated`; not null |

The module knows names only, not Spark, so that every task may import it.
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
"""The columns that a sink takes, and the types they may have (`DataType.simpleString`)."""
IGNORED: Final = frozenset({"id", "ctime", "nacks", "additional_deliveries", "node", "state"})
"""Columns of the source that a sink passes over: a new job has its own."""


def source_schema(*, metadata: bool, state: bool) -> str:
    """The DDL of what a source gives."""
    parts = [SOURCE]
    if metadata:
        parts.append(METADATA)
        if state:
            parts.append(STATE)
    return ", ".join(parts)
