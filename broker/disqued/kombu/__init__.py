"""The transport `disque://` for kombu, and so the broker of Celery: `broker_url = "disque://host1,host2"`.

Importing this package tells kombu the names `disque` and `disques`. kombu imports it by itself: it is an entry point of
the group `kombu.serializers`, which kombu loads with its serializers. So it must import nothing else, and never fail.

| module | |
|---|---|
| `transport` | the connection of kombu: waits for messages, alone or with kombu's event loop |
| `channel` | queues, exchanges, publishing and consuming by commands of the broker |
| `fetching` | the pending GETJOB of a channel |
| `leases` | the thread that renews, acknowledges and returns the jobs of a connection |
| `publishing` | from a message to ADDJOB: ID, delay, time to live, priority |
| `envelope` | from a message to the body of a job, and back |
| `bindings` | which queues are bound to an exchange, for all processes |
| `nodeclients` | a client for each node |
| `options`, `urls` | what users can set |
"""

from __future__ import annotations

from typing import Final

from disqued.kombu.alias import register

__all__ = ["SERIALIZER"]

SERIALIZER: Final = (None, None, "application/x-disque-transport")
"""What kombu registers for the entry point: a name without an encoder and a decoder."""

register()
