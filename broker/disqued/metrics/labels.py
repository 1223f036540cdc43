r"""Queue names, which are any bytes, as values of labels, which are text.

What is no UTF-8, and what is not to be seen, is written as bytes in hexadecimal, `\xff`, and a backslash as two: so no
two names become one, and no name holds a zero byte, which Prometheus could not read.
"""

from __future__ import annotations


def label_of(name: bytes) -> str:
    """The name of a queue as a value of a label."""
    text = name.replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")
    return text if text.isprintable() else "".join(map(_visible, text))


def _visible(character: str) -> str:
    return character if character.isprintable() else "".join(f"\\x{byte:02x}" for byte in character.encode())
