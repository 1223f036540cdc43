"""How this copy of the broker was built: the only place that finds out."""

from __future__ import annotations

from typing import Final

from disqued.core.jobs import job

COMPILED: Final = not job.__file__.endswith(".py")
"""Whether the hot modules run as machine code (mypyc) or are interpreted."""

FLAVOUR: Final = "compiled" if COMPILED else "interpreted"
