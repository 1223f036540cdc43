"""Versions of brokers: which ones may be in one cluster, and which change of the image is refused.

| change | is |
|---|---|
| another patch of the same release, in both directions | possible |
| to the next release: the next minor version, or X.0 of the next major version | possible |
| back to the previous release | possible if it can read the files of the brokers |
| to a version that a member already runs | possible if it can read the files: it completes or reverts a change |
| over more than one release, in both directions | refused |

The version of a broker is what the broker reports. The version of an image that no broker runs yet is its tag, if that
is a version. The tag may be wrong or say nothing, so the first replaced pod counts: if the version of its broker skips
releases, the rollout stops there, and a broker that cannot read its file does not start.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from disqued.releases import FILE_FORMATS


class Release(NamedTuple):
    """The part of a version that counts: patches of a release change neither files nor messages."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


_SINCE: Final[Mapping[str, Release]] = {
    "cluster-seeds-delay": Release(0, 2),
    "external-port": Release(0, 2),
    "shutdown-drain-timeout": Release(0, 2),
}
"""Directives that the operator gives to all brokers, and the first release that knows each. A broker does not start
with one that it does not know."""
_VERSION: Final = re.compile(r"v?(\d+)\.(\d+)(?![\d])")


def release(version: str) -> Release | None:
    """Return the release of a version such as `1.2.3`; None if the text is no version."""
    match = _VERSION.match(version)
    return Release(int(match[1]), int(match[2])) if match else None


def is_older(version: str, than: str) -> bool:
    """Return whether a version is of an older release than another; false if one of them is no version."""
    one, other = release(version), release(than)
    return one is not None and other is not None and one < other


def tag_of(image: str) -> str:
    """Return the tag of an image; empty if it has none. It may have a digest too."""
    return image.rpartition("/")[2].partition("@")[0].partition(":")[2]


def knows(image: str, directive: str) -> bool:
    """Return whether the brokers of an image know a directive, by its tag.

    A tag that is no version, such as `main`, counts as new. An image that has only a digest may be of any release.
    """
    tag = tag_of(image)
    of = release(tag)
    return bool(tag) if of is None else of >= _SINCE[directive]


def readable_format(of: Release) -> int:
    """Return the newest format of files that a release reads."""
    return max((number for first, number in FILE_FORMATS.items() if first <= of), default=0)


def refusal(present: Iterable[str], target: str, file_format: int) -> str:
    """Return why members of these versions must not change to `target`; empty if they may, or if it is no version.

    Args:
        present: Versions that members run.
        target: The version to change to.
        file_format: The newest format of their files; 0 if it is unknown.
    """
    wanted = release(target)
    if wanted is None:
        return ""
    running = sorted({known for version in present if (known := release(version)) is not None})
    if file_format > readable_format(wanted):
        return f"release {wanted} cannot read the files of the brokers, which have format {file_format}"
    if wanted in running:
        return ""
    return next((why for one in running if (why := _step(one, wanted))), "")


def _step(one: Release, other: Release) -> str:
    """Return why a member must not change from one release to another."""
    ahead = _releases_between(one, other) if other > one else _releases_between(other, one)
    if ahead <= 1:
        return ""
    if other > one:
        return f"members run {one}, and {other} skips releases: upgrade one release at a time, next to {_next(one)}"
    return f"members run {one}, and {other} is more than one release back: go back one release at a time"


def _releases_between(older: Release, newer: Release) -> int:
    """Return how many releases an upgrade crosses; 2 for any number that is too high."""
    if older.major == newer.major:
        return newer.minor - older.minor
    return 1 if newer == (older.major + 1, 0) else 2


def _next(one: Release) -> str:
    return f"{one.major}.{one.minor + 1}, or to {one.major + 1}.0 if {one} is the last release of {one.major}"
