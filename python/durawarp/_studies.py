"""What is made of outcomes, or of several runs: ``diff``, ``explain``, ``bisect``, ``reproduce``."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from . import _native
from ._errors import Error
from ._outcome import Outcome
from ._progress import Show, shown
from ._runs import Path, Value, changes, noted, number, outcome_of, request, text_of, work
from ._types import PaperAsk, Request


def read(path: Path) -> Outcome:
    """The outcome in a file that ``durawarp run --json`` wrote.

    Raises InputError, with its place, where it is none.
    """
    return Outcome(json.loads(_native.read_outcome(path)))


class Differences(dict[str, Any]):
    """What differs between two runs, as ``durawarp diff --json`` writes it."""

    equal: bool
    """Nothing does."""
    text: str
    """What ``durawarp diff`` prints."""

    def __init__(self, values: dict[str, Any], equal: bool, text: str) -> None:
        super().__init__(values)
        self.equal, self.text = equal, text


def diff(one: Mapping[str, Any] | Path, other: Mapping[str, Any] | Path) -> Differences:
    """Two runs side by side, outcomes or files of them: configuration, results, and every count that differs."""
    texts = [
        json.dumps(run) if isinstance(run, Mapping) else _native.read_outcome(run)
        for run in (one, other)
    ]
    equal, values, text = _native.diff(*texts)
    return Differences(json.loads(values), equal, text)


class Explanation(NamedTuple):
    """What a scheme did in a run, and why."""

    text: str
    """What ``durawarp explain`` prints."""
    data: Any
    """What its ``--json`` writes."""
    svg: str | None
    """Its drawing; None where the scheme has none."""
    csv: str | None
    """The data of the drawing."""
    outcome: Outcome
    """The run."""


def explain(
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
    progress: Show = None,
) -> Explanation:
    """What a scheme did in a run, and why; of a program of CPUs, where its time went.

    The profile is ``ci`` unless one is named. Raises InputError, also for a scheme that does nothing that could be
    explained; RunFailed, Defect.
    """
    asked = request(locals(), small=True)
    with shown(progress) as told:
        worth, explanation, notes = _native.explain(asked, number("threads", threads), told)
    noted(notes)
    outcome = outcome_of(worth)
    if explanation is None:
        raise Error(f"the run of scheme `{outcome.scheme}` left nothing to explain")
    text, data, drawn = explanation
    svg, values = drawn or (None, None)
    return Explanation(text, json.loads(data), svg, values, outcome)


def bisect(
    workload: Path,
    other: Mapping[str, Value],
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
    epoch_cycles: int = 1000,
    max_cycles: int | None = None,
) -> dict[str, Any]:
    """Where two runs part: the first epoch, component and event in which they differ.

    The second run is the first one with what ``other`` changes, keys as of a sweep: ``{"l2.slice_kb": 256}``,
    ``{"workload": "mine"}``, ``{"scheme": "strict"}``. ``equal`` says whether they never part, ``runs`` which they are;
    ``found`` is ``equal``, ``parted``, ``states`` or ``ends``, with what is known of it. The profile is ``ci`` unless
    one is named.
    """
    first = request(locals(), small=True)
    second: Request = {**first, "keys": first["keys"] + [(key, text_of(value)) for key, value in other.items()]}
    report: dict[str, Any] = json.loads(_native.bisect(first, second, number("epoch_cycles", epoch_cycles, 1, 2**63)))
    return report


class Judged(NamedTuple):
    """Something that a paper's figure shows, and whether our runs show it."""

    figure: str
    verdict: str
    text: str
    evidence: str


class Reproduction(NamedTuple):
    """What came of a paper's experiments."""

    paper: str
    complete: bool
    """Every run went well."""
    met: int
    not_met: int
    not_applicable: int
    asks: list[Judged]
    failed: list[tuple[str, str]]
    """Runs that failed, and why."""
    text: str
    """What ``durawarp reproduce`` prints."""
    files: dict[str, str]
    """Files of ``--out``: tables as CSV, figures as SVG, a page."""

    def table(self, name: str) -> list[dict[str, str]]:
        """The rows of a table: ``table("fig7")``."""
        return list(csv.DictReader(self.files[f"{name}.csv"].splitlines()))

    def save(self, folder: Path) -> None:
        """Writes the files."""
        os.makedirs(folder, exist_ok=True)
        for name, content in self.files.items():
            with open(os.path.join(folder, name), "w", encoding="utf-8", newline="") as file:
                file.write(content)


def reproduce(
    paper: str,
    figures: str | Sequence[str] = "all",
    *,
    kernels: Sequence[str] = (),
    profile: str = "paper",
    machine: Path | None = None,
    set: Mapping[str, Value] | None = None,
    readings: bool = True,
    seed: int = 0,
    results: Path | None = "durawarp-results",
    jobs: int = 0,
    memory_gib: int | None = None,
    progress: Show = None,
) -> Reproduction:
    """A paper's experiments, ours beside the published numbers, as ``durawarp reproduce``.

    The default profile takes hours for all figures; ``ci`` takes seconds a figure. Runs are kept in ``results``, a
    folder, and what is there is not run again; None keeps nothing.

    Raises InputError, ResultsError. A run that failed is no exception: ``complete`` is false.
    """
    ask: PaperAsk = {
        "paper": paper,
        "figures": [figures] if isinstance(figures, str) else list(figures),
        "kernels": list(kernels),
        "profile": profile,
        "machine": None if machine is None else os.fspath(machine),
        "set": changes(set),
        "no_readings": not readings,
        "seed": seed,
    }
    with shown(progress) as told:
        report, text, files = _native.reproduce(ask, work(results, jobs, memory_gib), told)
    found = json.loads(report)
    met, not_met, not_applicable = found["tally"]
    return Reproduction(
        found["paper"],
        found["complete"],
        met,
        not_met,
        not_applicable,
        [Judged(**ask) for ask in found["asks"]],
        [(label, why) for label, why in found["failed"]],
        text,
        dict(files),
    )
