"""One experiment: ``run``, ``crash``, ``compare``, ``check``."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import _native
from ._errors import Defect, RunFailed
from ._progress import Show, shown
from ._types import Ask, Request, Work, Worth

Value = str | int | float | bool
Path = str | os.PathLike[str]

MOST_JOBS = 4096


def text_of(value: object) -> str:
    """A value as in a sweep file or behind ``--set``."""
    if isinstance(value, bool):
        return str(value).lower()
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def number(name: str, value: int, least: int = 0, most: int = MOST_JOBS) -> int:
    if not least <= value <= most:
        raise ValueError(f"{name}: expected a number from {least} to {most}, got {value}")
    return value


WORDS = ("workload", "machine", "scheme", "profile", "seed", "instrument", "flag_barrier", "loop_log", "max_cycles")
"""Arguments that are keys themselves."""


def request(given: Mapping[str, Any], *, small: bool) -> Request:
    """What the native half makes a recipe of: arguments of a function below, by their names."""
    keys = [(word, text_of(given[word])) for word in WORDS if given.get(word) is not None]
    for name, prefix in (("set", ""), ("params", "params."), ("inputs", "inputs.")):
        keys += [(prefix + key, text_of(value)) for key, value in (given[name] or {}).items()]
    return {
        "keys": keys,
        "args": list(given["args"]),
        "persistent": given["persistent"],
        "reference": given.get("reference", True),
        "small": small,
    }


def noted(notes: Iterable[str]) -> None:
    for note in notes:
        warnings.warn(note, stacklevel=3)


def outcome_of(worth: Worth) -> dict[str, Any]:
    """The outcome of a run that went well or was cut.

    Raises RunFailed for another, and Defect where the simulator failed.
    """
    outcome: dict[str, Any] | None = None if worth["outcome"] is None else json.loads(worth["outcome"])
    if worth["state"] == "failed" or outcome is None:
        defect = outcome is None or outcome["end"]["kind"] == "panicked"
        raise (Defect if defect else RunFailed)(worth["why"] or "the run was stopped", outcome)
    return outcome


def run(
    workload: Path,
    *,
    machine: Path | None = None,
    scheme: Path | None = None,
    profile: str | None = None,
    set: Mapping[str, Value] | None = None,
    params: Mapping[str, Value] | None = None,
    seed: int = 0,
    inputs: Mapping[str, Path] | None = None,
    args: Sequence[str] = (),
    persistent: bool = False,
    instrument: str | None = None,
    flag_barrier: str | None = None,
    loop_log: bool | None = None,
    threads: int = 0,
    max_cycles: int | None = None,
    reference: bool = True,
    progress: Show = None,
) -> dict[str, Any]:
    """Simulates a workload: the outcome, as ``durawarp run --json`` writes it.

    Arguments are named as the options of ``durawarp run``. ``set`` takes keys of the machine and of schemes
    (``{"l2.slice_kb": 256}``), ``params`` those of the workload (``{"N": 4096}``), ``inputs`` files of buffers.
    ``threads`` is 0 for one a core; no result depends on it. A run that ``max_cycles`` cuts is no failure.

    Raises InputError, RunFailed, Defect; KeyboardInterrupt within a second of Ctrl-C.
    """
    asked = request(locals(), small=False)
    with shown(progress) as told:
        worth, notes = _native.run(asked, number("threads", threads), told)
    noted(notes)
    return outcome_of(worth)


def crash(
    workload: Path,
    *,
    machine: Path | None = None,
    scheme: Path | None = None,
    profile: str | None = None,
    set: Mapping[str, Value] | None = None,
    params: Mapping[str, Value] | None = None,
    seed: int = 0,
    inputs: Mapping[str, Path] | None = None,
    args: Sequence[str] = (),
    persistent: bool = False,
    instrument: str | None = None,
    flag_barrier: str | None = None,
    loop_log: bool | None = None,
    points: str | int = "auto",
    double: bool = False,
    actual_only: bool = False,
    claim: str | None = None,
    resume: int = 24,
    keep: int = 8,
    threads: int = 0,
    progress: Show = None,
) -> dict[str, Any]:
    """Lets power fail at every instant that matters, recovers, and judges what is left.

    The report is what ``durawarp crash --json`` writes, with one more key: ``holds`` says whether every state
    is consistent. A state that is not is no exception; where nothing was judged ``unjudged`` says why. The
    profile is ``ci`` unless one is named.

    Raises InputError; KeyboardInterrupt within a second of Ctrl-C.
    """
    asked = request(locals(), small=True)
    ask: Ask = {
        "points": str(points),
        "double": double,
        "actual_only": actual_only,
        "claim": claim,
        "resume": resume,
        "keep": keep,
    }
    with shown(progress) as told:
        holds, report, notes = _native.crash(asked, ask, number("threads", threads), told)
    noted(notes)
    return {"holds": holds, **json.loads(report)}


def compare(
    workload: Path,
    schemes: str | Sequence[Path] = "all",
    *,
    machine: Path | None = None,
    profile: str | None = None,
    set: Mapping[str, Value] | None = None,
    params: Mapping[str, Value] | None = None,
    seed: int = 0,
    inputs: Mapping[str, Path] | None = None,
    args: Sequence[str] = (),
    persistent: bool = False,
    instrument: str | None = None,
    flag_barrier: str | None = None,
    loop_log: bool | None = None,
    results: Path | None = None,
    jobs: int = 0,
    memory_gib: int | None = None,
    progress: Show = None,
) -> list[dict[str, Any]]:
    """Runs a workload under several persistency schemes: an outcome for each, ``base`` first.

    ``schemes`` are names, files, or ``"all"``; ``base``, which times are relative to, is always among the
    outcomes. The profile is ``ci`` unless one is named. With ``results``, a folder, what is there is not run
    again. :func:`frame` makes a frame of the outcomes.

    Raises InputError, ResultsError; RunFailed or Defect for the first run that failed.
    """
    asked = request(locals(), small=True)
    names = [schemes] if isinstance(schemes, str) else [os.fspath(name) for name in schemes]
    with shown(progress) as told:
        came, notes = _native.compare(asked, names, work(results, jobs, memory_gib), told)
    noted(notes)
    return [outcome_of(one["worth"]) for one in came]


def check(
    workload: Path,
    *,
    machine: Path | None = None,
    scheme: Path | None = None,
    profile: str | None = None,
    set: Mapping[str, Value] | None = None,
    params: Mapping[str, Value] | None = None,
    seed: int = 0,
    inputs: Mapping[str, Path] | None = None,
    args: Sequence[str] = (),
    persistent: bool = False,
    threads: Sequence[int] = (1, 2, 4),
    epoch_cycles: int = 1000,
    max_cycles: int | None = None,
    progress: Show = None,
) -> dict[str, Any]:
    """Runs a workload several ways and compares them epoch by epoch: results do not depend on threads.

    ``equal`` says whether all were; ``ways`` has each with its ``difference``, ``failure`` why the program
    itself went wrong, if it did. The profile is ``ci`` unless one is named.
    """
    asked = request(locals(), small=True)
    counts = [number("threads", count) for count in threads]
    with shown(progress) as told:
        report: dict[str, Any] = json.loads(
            _native.check(asked, counts, number("epoch_cycles", epoch_cycles, 1, 2**63), told)
        )
    return report


def work(
    results: Path | None,
    jobs: int,
    memory_gib: int | None,
    shard: tuple[int, int] | None = None,
    keep_failed: bool = False,
) -> Work:
    """How many runs go on at a time, and where results are kept."""
    return {
        "jobs": number("jobs", jobs),
        "memory_gib": None if memory_gib is None else number("memory_gib", memory_gib, 1, (1 << 20) - 1),
        "results": None if results is None else os.fspath(results),
        "shard": shard,
        "keep_failed": keep_failed,
    }


def summary(outcome: Mapping[str, Any]) -> str:
    """What ``durawarp run`` prints of an outcome."""
    return _native.summary(json.dumps(outcome))
