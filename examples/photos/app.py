"""The Celery application: where its broker is, and what it runs every night.

The broker and the results are named by the environment, as Celery reads it: CELERY_BROKER_URL and
CELERY_RESULT_BACKEND. Nothing else in this folder knows them.
"""

from celery import Celery
from celery.schedules import crontab

app = Celery("photos", include=["photos.tasks"])
app.conf.update(
    task_acks_late=True,  # a task is done when its worker has done it, not when it has started
    task_reject_on_worker_lost=True,
    task_routes={"photos.tasks.thumbnail": {"queue": "thumbnails"}},
    task_default_queue="photos",
    worker_prefetch_multiplier=4,
    beat_schedule={
        "nightly-report": {"task": "photos.tasks.report", "schedule": crontab(hour=2, minute=0)},
    },
    timezone="UTC",
)
