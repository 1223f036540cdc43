"""Human-readable sizes, durations and rates."""

from __future__ import annotations

from datetime import UTC, datetime

_DURATIONS = (("d", 86400), ("h", 3600), ("m", 60))


def human_bytes(count: float) -> str:
    """Format a size in powers of 1024, in at most 8 characters: `1.43M`."""
    for unit in "BKMGT":
        if abs(count) < 1024:
            return f"{count:.0f}B" if unit == "B" else f"{count:.2f}{unit}"
        count /= 1024
    return f"{count:.2f}P"


def human_duration(seconds: float) -> str:
    """Format a duration in its two largest units: `3d4h`, `5m12s`, `12s`; below ten seconds with one decimal."""
    if seconds < 10:
        return f"{seconds:.1f}".removesuffix(".0") + "s"
    rest = int(seconds)
    words: list[str] = []
    for unit, size in (*_DURATIONS, ("s", 1)):
        if rest >= size or words:
            words.append(f"{rest // size}{unit}")
            rest %= size
        if len(words) == 2:
            break
    return "".join(word for word in words if word[0] != "0") or "0s"


def human_rate(per_second: float) -> str:
    """Format events per second: `0`, `0.3`, `17`, `12.3k`."""
    if per_second >= 10_000:
        return f"{per_second / 1000:.1f}k"
    return f"{per_second:.1f}" if 0 < per_second < 10 else f"{per_second:.0f}"


def moment(unix_ms: int | None) -> str:
    """Format a time in UTC, in seconds; empty if there is none."""
    return "" if unix_ms is None else datetime.fromtimestamp(unix_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
