"""An application whose tasks run on Celery: pictures arrive over HTTP, workers make thumbnails and a nightly report."""
