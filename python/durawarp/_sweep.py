"""Many experiments: a sweep over the cores of this host, or on the workers of an executor."""

from __future__ import annotations

import json
import os
import queue
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from . import _native
from ._errors import ExecutorFailed
from ._frames import Library, framed
from ._outcome import Outcome
from ._progress import Show, Told, shown
from ._runs import Path, work
from ._types import Work, Worth

RESULTS = "durawarp-results"
"""The folder of results when none is named, as on the command line."""


class Future(Protocol):
    """What is asked of an executor's futures: those of ``concurrent.futures`` and of dask are such."""

    def result(self) -> Any: ...
    def cancel(self) -> Any: ...
    def add_done_callback(self, fn: Any, /) -> Any: ...


class Executor(Protocol):
    """What is asked of an executor."""

    def submit(self, fn: Any, /, *args: Any) -> Any: ...


class Sweep(Sequence[dict[str, Any]]):
    """What a sweep came to: a sequence of its points, in the order of the sweep file's axes.

    A point is a dict of ``key``, ``label``, ``values`` (by axis and word), ``state`` (``good``, ``cut`` by its
    cycle limit, ``failed``, ``missing``) and ``why`` it failed.
    """

    def __init__(self, plan: _native.Plan, results: str, temporary: tempfile.TemporaryDirectory[str] | None) -> None:
        self.name: str = plan.name
        """Name of the sweep."""
        # It lives as long as the results are looked at.
        self._temporary = temporary
        self._results = plan.results(results)
        self._points: list[dict[str, Any]] = json.loads(self._results.points())

    def __len__(self) -> int:
        return len(self._points)

    def __getitem__(self, index: Any) -> Any:
        return self._points[index]

    def __repr__(self) -> str:
        states = [point["state"] for point in self._points]
        counts = [f"{states.count(state)} {state}" for state in ("good", "cut", "failed", "missing") if state in states]
        return f"<Sweep {self.name!r}: {', '.join(counts)}>"

    @property
    def failed(self) -> list[dict[str, Any]]:
        """Points that failed."""
        return [point for point in self._points if point["state"] == "failed"]

    def outcome(self, point: int) -> Outcome | None:
        """The outcome of a point by its number, as of :func:`run`; ``None`` where it has none."""
        text = self._results.outcome(range(len(self))[point])
        return None if text is None else Outcome(json.loads(text))

    def outcomes(self) -> Iterator[Outcome | None]:
        """The outcomes of all points, read one by one."""
        return (self.outcome(point) for point in range(len(self)))

    def table(self, metrics: Sequence[str] | None = None, *, wide: bool = True) -> list[dict[str, Any]]:
        """Rows as of ``durawarp sweep table``: one a point, or, if not ``wide``, one a point and metric.

        The metrics are those of the sweep file unless some are named.
        """
        columns, rows = self._table(metrics, wide)
        return [dict(zip(columns, row)) for row in rows]

    def frame(self, metrics: Sequence[str] | None = None, *, wide: bool = True, library: Library | None = None) -> Any:
        """As :meth:`table`, as a frame: of pandas where it is installed, else of polars, unless one is named."""
        columns, rows = self._table(metrics, wide)
        return framed([dict(zip(columns, row)) for row in rows], columns, library)

    def _table(self, metrics: Sequence[str] | None, wide: bool) -> tuple[list[str], list[list[Any]]]:
        columns, rows = self._results.table(None if metrics is None else list(metrics), wide)
        return columns, json.loads(rows)

    def figures(self) -> dict[str, str]:
        """The figures that the sweep file asks for: SVG by name."""
        return dict(self._results.figures())


def sweep(
    spec: Path | Mapping[str, Any],
    *,
    results: Path | None = RESULTS,
    executor: Executor | None = None,
    jobs: int = 0,
    memory_gib: int | None = None,
    shard: tuple[int, int] | None = None,
    keep_failed: bool = False,
    dry_run: bool = False,
    progress: Show = None,
) -> Sweep:
    """Runs the points of a sweep that a folder of results lacks.

    ``spec`` is a sweep file, or a dict of what such a file holds. ``results`` is the folder, the same as of
    ``durawarp sweep run``; with ``None`` nothing is kept. ``dry_run`` runs nothing. ``shard=(1, 4)`` takes the
    first quarter of the points.

    With an ``executor`` points run on its workers: any with ``submit`` and futures like those of
    ``concurrent.futures``, and dask's ``Client``. Results are the same; this process keeps them.

    Raises InputError before anything runs, ResultsError, ExecutorFailed. A point that fails is no exception.
    After Ctrl-C (KeyboardInterrupt within a second) what is done is kept: the next call goes on.
    """
    plan = _planned(spec)
    temporary = None
    if results is None:
        temporary = tempfile.TemporaryDirectory(prefix="durawarp-", ignore_cleanup_errors=True)
        results = temporary.name
    if shard is not None:
        nth, of = shard
        if not 1 <= nth <= of:
            raise ValueError(f"shard: expected (I, N) with I from 1 to N, got {shard}")
        shard = (nth - 1, of)
    folder = os.fspath(results)
    asked = work(folder, jobs, memory_gib, shard, keep_failed)
    if not dry_run:
        with shown(progress) as told:
            if executor is None:
                plan.run(asked, told)
            else:
                _run_on(executor, plan, asked, folder, told)
    return Sweep(plan, folder, temporary)


def _planned(spec: Path | Mapping[str, Any]) -> _native.Plan:
    if isinstance(spec, Mapping):
        whole = {"schema": 1, "name": "sweep", **spec}
        return _native.Plan.read(json.dumps(whole, default=os.fspath), os.getcwd())
    return _native.Plan.load(os.fspath(spec))


def run_point(task: Mapping[str, Any]) -> Worth:
    """Runs on a worker what one point is; plain data goes in and out."""
    # Some executors make lists of tuples on the way.
    keys = [(key, value) for key, value in task["keys"]]
    return _native.run_point(task["key"], task["label"], keys, task["reference"])


def _run_on(executor: Any, plan: _native.Plan, asked: Work, folder: str, told: Told | None) -> None:
    tasks = plan.to_run(asked)
    if not tasks:
        return
    # dask's Client has futures of its own, and an executor whose futures are the usual ones.
    if hasattr(executor, "get_executor"):
        executor = executor.get_executor(pure=False)
    keeper = plan.keeper(folder)
    done: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
    labels: dict[int, str] = {}
    futures: dict[int, Any] = {}
    lost: dict[int, BaseException] = {}
    try:
        for point, key, label, keys, reference in tasks:
            task = {"key": key, "label": label, "keys": keys, "reference": reference}
            labels[point] = label
            futures[point] = executor.submit(run_point, task)
            futures[point].add_done_callback(lambda future, point=point: done.put((point, future)))
        while futures:
            if told is not None:
                told("points", len(tasks) - len(futures), len(tasks), None, f"{len(lost)} lost" if lost else "")
            try:
                # Ctrl-C is heeded between two looks.
                point, future = done.get(timeout=0.2)
            except queue.Empty:
                continue
            del futures[point]
            try:
                worth = future.result()
            except Exception as error:
                lost[point] = error
                continue
            keeper.keep(point, worth)
    finally:
        for future in futures.values():
            future.cancel()
    if told is not None:
        told("points", len(tasks), len(tasks), None, "")
    if lost:
        first = min(lost)
        raise ExecutorFailed(
            f"{len(lost)} of {len(tasks)} points came back without a result, `{labels[first]}` the first: "
            f"{type(lost[first]).__name__}: {lost[first]}",
            [labels[point] for point in sorted(lost)],
        ) from lost[first]
