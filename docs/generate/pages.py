"""The list of the generated pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from docs.generate import (
    bus,
    celery_options,
    configuration,
    declared,
    disquecluster,
    httpapi,
    job_states,
    metrics,
    spark_options,
)

DOCS: Final = Path(__file__).parents[1]
PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "architecture/job-states.md": job_states.page,
    "celery-options.md": celery_options.page,
    "configuration.md": configuration.page,
    "disquecluster.md": disquecluster.page,
    "disquebackup.md": declared.backup_page,
    "disquequeue.md": declared.queue_page,
    "disqueschedule.md": declared.schedule_page,
    "disqueuser.md": declared.user_page,
    "http-api.md": httpapi.page,
    "metrics.md": metrics.page,
    "protocol/bus.md": bus.page,
    "spark/options.md": spark_options.page,
}
"""The names of the pages below docs, and the functions that return their text."""
