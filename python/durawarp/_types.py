"""What crosses between Python and the native half, beside texts and numbers."""

from __future__ import annotations

from typing import TypedDict


class Request(TypedDict):
    keys: list[tuple[str, str]]
    args: list[str]
    persistent: bool
    reference: bool
    small: bool


Extras = TypedDict(
    "Extras",
    {
        "from": str | None,
        "set": list[str],
        "checkpoint": tuple[int, str] | None,
        "timeline": str | None,
        "timeline_budget_mib": int,
        "wear": bool,
        "max_cycles": int | None,
    },
)
"""``from`` is no name in Python."""


class PaperAsk(TypedDict):
    paper: str
    figures: list[str]
    kernels: list[str]
    profile: str
    machine: str | None
    set: list[str]
    no_readings: bool
    seed: int


class Ask(TypedDict):
    points: str
    double: bool
    actual_only: bool
    claim: str | None
    resume: int
    keep: int


class Work(TypedDict):
    jobs: int
    memory_gib: int | None
    results: str | None
    shard: tuple[int, int] | None
    keep_failed: bool


class Worth(TypedDict):
    state: str
    why: str | None
    outcome: str | None
