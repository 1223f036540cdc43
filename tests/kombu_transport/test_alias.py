"""kombu and Celery know the URL without an import of ours, and importing kombu loads nothing of ours but the name."""

from __future__ import annotations

import subprocess
import sys


def run(program: str) -> str:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program], check=True, capture_output=True, text=True, timeout=60
    ).stdout.strip()


def test_celery_knows_the_url() -> None:
    program = "import celery; print(celery.Celery(broker='disque://h').connection().transport.driver_type)"
    assert run(program) == "disque"


def test_kombu_knows_the_url_once_it_has_its_serializers() -> None:
    program = "from kombu import Connection, Queue; print(Connection('disques://h').transport.driver_name)"
    assert run(program) == "disqued"


def test_program_that_imports_only_the_connection_of_kombu_imports_the_transport() -> None:
    program = "import disqued.kombu, kombu; print(kombu.Connection('disque://h').transport.driver_name)"
    assert run(program) == "disqued"


def test_importing_kombu_loads_no_client() -> None:
    program = "import kombu.serialization, sys; print(sorted(name for name in sys.modules if 'disqued' in name))"
    assert run(program) == "['disqued', 'disqued.kombu', 'disqued.kombu.alias']"


def test_importing_the_broker_loads_no_kombu() -> None:
    program = "import disqued.server.main, disqued.client, disqued.cli.main, sys; print('kombu' in sys.modules)"
    assert run(program) == "False"
