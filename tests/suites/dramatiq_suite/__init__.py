"""What Dramatiq's own tests expect beside them, and their source distribution does not contain.

`install` writes three files that import the modules here: the package, which puts this broker in place of Redis and
RabbitMQ, the helpers, and the fixtures.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

_FILES: Final = {
    "__init__.py": "from suites.dramatiq_suite import brokers\n\nbrokers.replace()\n",
    "common.py": "from suites.dramatiq_suite.helpers import *  # noqa: F403\n",
    "conftest.py": "from suites.dramatiq_suite.fixtures import *  # noqa: F403\n",
}


def install(tests: Path) -> None:
    """Add the files to the directory of the tests."""
    for name, text in _FILES.items():
        (tests / name).write_text(text, encoding="utf-8")
