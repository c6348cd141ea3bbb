"""One experiment: ``run``, ``resume``, ``crash``, ``compare``, ``stalls``, ``check``."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from . import _native
from ._errors import Defect, RunFailed
from ._outcome import Outcome, Outcomes
from ._progress import Show, shown
from ._types import Ask, Extras, Request, Work, Worth

Value = str | int | float | bool
Path = str | os.PathLike[str]

MOST_JOBS = 4096


def text_of(value: object) -> str:
    """A value as in a sweep file or behind ``--set``."""
    if isinstance(value, bool):
        return str(value).lower()
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def changes(given: Mapping[str, Value] | None) -> list[str]:
    """Keys and their values as behind ``--set``."""
    return [f"{key}={text_of(value)}" for key, value in (given or {}).items()]


def number(name: str, value: int, least: int = 0, most: int = MOST_JOBS) -> int:
    if not least <= value <= most:
        raise ValueError(f"{name}: expected a number from {least} to {most}, got {value}")
    return value


WORDS = (
    "workload",
    "machine",
    "scheme",
    "profile",
    "seed",
    "instrument",
    "flag_barrier",
    "loop_log",
    "reload",
    "max_cycles",
    "sample",
    "roi",
)
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


NO_EXTRAS: Extras = {
    "from": None,
    "set": [],
    "checkpoint": None,
    "timeline": None,
    "timeline_budget_mib": 64,
    "wear": False,
    "max_cycles": None,
}


def noted(notes: Iterable[str]) -> None:
    for note in notes:
        warnings.warn(note, stacklevel=3)


def outcome_of(worth: Worth) -> Outcome:
    """The outcome of a run that went well or was cut.

    Raises RunFailed for another, and Defect where the simulator failed.
    """
    outcome = None if worth["outcome"] is None else Outcome(json.loads(worth["outcome"]))
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
    reload: bool | None = None,
    threads: int = 0,
    max_cycles: int | None = None,
    sample: int | None = None,
    roi: str | None = None,
    reference: bool = True,
    wear: bool = False,
    timeline: Path | None = None,
    timeline_budget_mib: int = 64,
    checkpoint_at: tuple[int, Path] | None = None,
    progress: Show = None,
) -> Outcome:
    """Simulates a workload: the outcome, as ``durawarp run --json`` writes it.

    Arguments are named as the options of ``durawarp run``. ``set`` takes keys of the machine and of schemes
    (``{"l2.slice_kb": 256}``), ``params`` those of the workload (``{"N": 4096}``), ``inputs`` files of buffers.
    ``threads`` is 0 for one a core; no result depends on it. A run that ``max_cycles`` cuts is no failure.
    ``sample`` is a number of windows (2 to 64) of each launch, or of intervals of a program's phases: cycles are an
    estimate then. ``roi`` is a region of interest (``"function=work"``). ``timeline`` is a file
    for ui.perfetto.dev, packed where its name ends in ``.gz``. ``checkpoint_at`` is a core cycle and a file, which
    :func:`resume` goes on from.

    Raises InputError, RunFailed, Defect; OSError for a file that cannot be written; KeyboardInterrupt within a second
    of Ctrl-C.
    """
    asked = request(locals(), small=False)
    at = None if checkpoint_at is None else (number("checkpoint_at", checkpoint_at[0], 0, 2**63), checkpoint_at[1])
    extras: Extras = {
        **NO_EXTRAS,
        "checkpoint": None if at is None else (at[0], os.fspath(at[1])),
        "timeline": None if timeline is None else os.fspath(timeline),
        "timeline_budget_mib": number("timeline_budget_mib", timeline_budget_mib, 1, 1 << 16),
        "wear": wear,
        "max_cycles": max_cycles,
    }
    with shown(progress) as told:
        worth, notes = _native.run(asked, extras, number("threads", threads), told)
    noted(notes)
    return outcome_of(worth)


def resume(
    checkpoint: Path,
    *,
    set: Mapping[str, Value] | None = None,
    threads: int = 0,
    max_cycles: int | None = None,
    reference: bool = True,
    progress: Show = None,
) -> Outcome:
    """Goes on from a checkpoint of :func:`run`, as ``durawarp run --from`` does.

    Without ``set`` the outcome is that of the whole run, bit by bit. ``set`` changes parameters from there on:
    durations, bandwidths, energies and thresholds.

    Raises InputError, RunFailed, Defect; OSError for a file that cannot be read.
    """
    nothing: Request = {"keys": [], "args": [], "persistent": False, "reference": reference, "small": False}
    extras: Extras = {
        **NO_EXTRAS,
        "from": os.fspath(checkpoint),
        "set": changes(set),
        "max_cycles": max_cycles,
    }
    with shown(progress) as told:
        worth, notes = _native.run(nothing, extras, number("threads", threads), told)
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
    reload: bool | None = None,
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
    reload: bool | None = None,
    results: Path | None = None,
    jobs: int = 0,
    memory_gib: int | None = None,
    progress: Show = None,
) -> Outcomes:
    """Runs a workload under several persistency schemes: an outcome for each, ``base`` first.

    ``schemes`` are names, files, or ``"all"``; ``base``, which times are relative to, is always among the
    outcomes. The profile is ``ci`` unless one is named. With ``results``, a folder, what is there is not run
    again. The list has ``text``, ``svg`` and ``csv``: what ``durawarp compare`` prints and draws. :func:`frame`
    makes a frame of the outcomes.

    Raises InputError, ResultsError; RunFailed or Defect for the first run that failed.
    """
    return _under_each(False, schemes, request(locals(), small=True), work(results, jobs, memory_gib), progress)


def stalls(
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
    reload: bool | None = None,
    results: Path | None = None,
    jobs: int = 0,
    memory_gib: int | None = None,
    progress: Show = None,
) -> Outcomes:
    """The same, for where persists wait: ``text`` and ``svg`` are those of ``durawarp stalls``.

    ``outcome["persists"]`` has the stages of each scheme. Raises InputError for a program of CPUs, whose persists have
    no such stages.
    """
    return _under_each(True, schemes, request(locals(), small=True), work(results, jobs, memory_gib), progress)


def _under_each(stalls: bool, schemes: str | Sequence[Path], asked: Request, many: Work, progress: Show) -> Outcomes:
    names = [schemes] if isinstance(schemes, str) else [os.fspath(name) for name in schemes]
    with shown(progress) as told:
        runs, text, drawn, notes = _native.compare(asked, names, stalls, many, told)
    noted(notes)
    return Outcomes([outcome_of(worth) for worth in runs], text, drawn)


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
    instrument: str | None = None,
    flag_barrier: str | None = None,
    loop_log: bool | None = None,
    reload: bool | None = None,
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
