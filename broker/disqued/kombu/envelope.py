"""The body of a job: a JSON object with the body, the headers and the properties of a message.

A body that is text stays readable; other bytes are in base64, as property `body_encoding` says. The object has the same
members as in kombu's other transports. A job that another program added, without this form, is a message with the body
of the job and no headers.
"""

from __future__ import annotations

import base64
from typing import Any, Final, TypeAlias

from kombu.utils.json import dumps, loads

from disqued.client import Job

Message: TypeAlias = dict[str, Any]
"""A message as kombu passes it: `body`, `headers`, `properties`, `content-type`, `content-encoding`."""

TEXT: Final = "utf-8"
BASE64: Final = "base64"
AFTER: Final = "disque_after"
"""The header with the IDs of jobs that must end before the message is delivered. The body of the job is without it."""
_PRIVATE: Final = ("delivery_tag", "disque_publication")
"""Properties that belong to one delivery or one publish, not to the message."""
_OF_KOMBU: Final = frozenset(
    (
        *("delivery_mode", "priority", "correlation_id", "reply_to", "expiration", "message_id", "timestamp", "type"),
        *("user_id", "app_id", "cluster_id", "body_encoding", "delivery_info"),
    )
)
"""The properties of AMQP and of virtual transports."""


def encode_body(body: str | bytes) -> tuple[str, str]:
    """Return the body as text and the name of its encoding."""
    if isinstance(body, str):
        return body, TEXT
    try:
        return bytes(body).decode(), TEXT
    except UnicodeDecodeError:
        return base64.b64encode(body).decode(), BASE64


def decode_body(body: str, encoding: str | None) -> str | bytes:
    """Reverse `encode_body`; kombu encodes text itself."""
    return base64.b64decode(body) if encoding == BASE64 else body


def encode(message: Message) -> bytes:
    """Return the body of the job for a message, whose body was encoded."""
    properties = {name: value for name, value in message["properties"].items() if name not in _PRIVATE}
    headers = {name: value for name, value in (message.get("headers") or {}).items() if name != AFTER}
    content = {**message, "headers": headers, "properties": properties}
    try:
        return _json(content)
    except TypeError:  # an argument of a publish that is no property: with AMQP, it is ignored
        content["properties"] = {name: value for name, value in properties.items() if name in _OF_KOMBU}
        return _json(content)


def _json(content: Message) -> bytes:
    try:
        text: str = dumps(content, ensure_ascii=False)
        return text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can only escape
        escaped: str = dumps(content)
        return escaped.encode()


def decode(job: Job) -> Message:
    """Return the message of a job.

    The delivery tag is the ID of the job. Whether and how often it was delivered before is in
    `delivery_info["redelivered"]` and, from the second delivery on, in the header `x-delivery-count`, as in RabbitMQ's
    quorum queues.
    """
    message = _parse(job.body)
    properties: dict[str, Any] = message["properties"]
    properties["delivery_tag"] = str(job.id)
    info: dict[str, Any] = properties.setdefault("delivery_info", {})
    info.setdefault("exchange", "")
    info.setdefault("routing_key", job.queue)
    if job.attempts:
        info["redelivered"] = True
        message["headers"] = {**(message.get("headers") or {}), "x-delivery-count": job.attempts}
    return message


def _parse(body: bytes) -> Message:
    try:
        message = loads(body.decode())
    except ValueError:
        message = None
    if isinstance(message, dict) and isinstance(message.get("properties"), dict) and "body" in message:
        return message
    text, encoding = encode_body(body)
    return {
        "body": text,
        "headers": {},
        "properties": {"body_encoding": encoding},
        "content-type": "application/data",
        "content-encoding": "binary",
    }
