"""The version of Disque whose commands this server speaks: what tools and clients compare."""

from __future__ import annotations

from typing import Final

SPOKEN_VERSION: Final = "1.0-rc1"
