"""The errors of the result backend that programs see."""

from __future__ import annotations

from kombu.exceptions import EncodeError


class ResultTooLarge(EncodeError):
    """The return value of a task is larger than nodes keep, also when compressed.

    Celery treats it as a value that cannot be serialised: the task has failed with this error. Store large values
    elsewhere, and return their address.
    """
