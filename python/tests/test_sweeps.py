"""Sweeps: as files and as dicts, gone on with, on executors, and the same everywhere."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from conftest import L2, ROOT, alike, interrupted

import durawarp
from durawarp import Progress

FIRST = {**L2, "axis": [{"key": "scheme", "values": ["base", "strict"]}, L2["axis"][1]]}
"""Four of the six points."""


def outcomes(sweep: durawarp.Sweep) -> list[dict[str, Any]]:
    found = [outcome for outcome in sweep.outcomes() if outcome is not None]
    return [alike(outcome) for outcome in found]


@pytest.fixture(scope="module")
def local() -> durawarp.Sweep:
    """The sweep as it is here."""
    return durawarp.sweep(L2, results=None)


def test_points_are_in_the_order_of_the_axes(local: durawarp.Sweep) -> None:
    values = [(point["values"]["scheme"], point["values"]["l2.slice_kb"]) for point in local]
    assert values == [(scheme, size) for scheme in ("base", "strict", "agpm") for size in (64, 128)]
    assert {point["state"] for point in local} == {"good"} and local.failed == []
    assert repr(local) == "<Sweep 'l2': 6 good>"
    outcome = local.outcome(-1)
    assert outcome is not None and outcome["scheme"] == "agpm"
    with pytest.raises(IndexError):
        local.outcome(6)


def test_its_table_has_metrics_and_what_they_are_relative_to(local: durawarp.Sweep) -> None:
    rows = local.table()
    assert [row["cycles"] for row in rows] == [outcome["time"]["core_cycles"] for outcome in outcomes(local)]
    assert rows[2]["cycles.relative"] == rows[2]["cycles"] / rows[0]["cycles"] != 1
    long = local.table(["events"], wide=False)
    assert len(long) == 6 and {row["unit"] for row in long} == {"events"}
    with pytest.raises(durawarp.InputError, match="did you mean `cycles`"):
        local.table(["cycle"])


def test_the_command_line_finds_its_results_and_makes_the_same_table(program: str, tmp_path: Path) -> None:
    file, results = ROOT / "benches" / "sweeps" / "l2.toml", tmp_path / "results"
    sweep = durawarp.sweep(file, results=results)
    words = [str(file), "--results", str(results)]
    run = subprocess.run([program, "sweep", "run", *words], check=True, capture_output=True, text=True)
    assert f"{len(sweep)} done, 0 to run" in run.stdout
    table = subprocess.run(
        [program, "sweep", "table", *words, "--wide", "--json", "-"], check=True, capture_output=True, text=True
    )
    assert json.loads(table.stdout) == sweep.table()
    figures = sweep.figures()
    assert (ROOT / "benches" / "sweeps" / "l2-bars.svg").read_text() in figures.values()


def test_a_sweep_goes_on_where_it_was(tmp_path: Path, local: durawarp.Sweep) -> None:
    results = tmp_path / "results"
    durawarp.sweep(FIRST, results=results)
    planned = durawarp.sweep(L2, results=results, dry_run=True)
    assert [point["state"] for point in planned] == ["good"] * 4 + ["missing"] * 2
    assert planned.outcome(5) is None
    told: list[Progress] = []
    whole = durawarp.sweep(L2, results=results, progress=told.append)
    assert outcomes(whole) == outcomes(local)
    assert told[-1].done == told[-1].total == 6 and min(now.done for now in told) >= 4


def test_shards_divide_the_points(tmp_path: Path) -> None:
    states = []
    for nth in (1, 2):
        sweep = durawarp.sweep(L2, results=tmp_path / str(nth), shard=(nth, 2))
        states.append([point["state"] for point in sweep])
    assert all({one, other} == {"good", "missing"} for one, other in zip(*states))
    with pytest.raises(ValueError, match="shard"):
        durawarp.sweep(L2, results=None, shard=(3, 2))


def test_a_point_that_fails_is_no_end(mine: Callable[..., Path], tmp_path: Path) -> None:
    folder = mine("a[idx] + b[idx]", "a[idx] + 2 * b[idx]")
    spec = {"base": {"workloads": [str(folder), "vecadd"], "profile": "ci"}}
    sweep = durawarp.sweep(spec, results=tmp_path / "results")
    assert [point["state"] for point in sweep] == ["failed", "good"]
    assert "the result is wrong" in sweep.failed[0]["why"]
    assert [row["cycles"] is None for row in sweep.table()] == [True, False]


def test_a_wrong_sweep_is_told_with_every_fault() -> None:
    wrong = {**L2, "axis": [{"key": "l2.slice_k", "values": [64]}], "metrics": ["cycle"]}
    with pytest.raises(durawarp.InputError) as raised:
        durawarp.sweep(wrong, results=None)
    assert {fault.help for fault in raised.value.faults} >= {"did you mean `cycles`?"}
    assert all(fault.line for fault in raised.value.faults)


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(durawarp.ResultsError, match="thesis.tex"):
        durawarp.sweep(L2, results=tmp_path)


def test_ctrl_c_keeps_what_is_done(tmp_path: Path) -> None:
    results = tmp_path / "results"
    spec = {"base": {"workload": "gemm", "profile": "ci"}, "axis": [{"key": "profile", "values": ["ci", "default"]}]}
    with interrupted(3.0):
        durawarp.sweep(spec, results=results, jobs=2)
    after = durawarp.sweep(spec, results=results, dry_run=True)
    assert [point["state"] for point in after] == ["good", "missing"]


@contextmanager
def pool_of(method: str) -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(2, multiprocessing.get_context(method)) as pool:
        yield pool


@contextmanager
def dask() -> Iterator[Any]:
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        yield client


EXECUTORS: dict[str, Callable[[], Any]] = {
    "threads": lambda: ThreadPoolExecutor(2),
    "fork": lambda: pool_of("fork"),
    "spawn": lambda: pool_of("spawn"),
    "dask": dask,
}


@pytest.mark.parametrize("name", EXECUTORS)
def test_points_on_an_executor_come_to_the_same(name: str, tmp_path: Path, local: durawarp.Sweep) -> None:
    # Judging takes threads; processes forked after it must not wait for them.
    durawarp.crash("vecadd", params={"N": 64}, scheme="strict")
    results = tmp_path / "results"
    durawarp.sweep(FIRST, results=results)
    told: list[Progress] = []
    with EXECUTORS[name]() as executor:
        sweep = durawarp.sweep(L2, results=results, executor=executor, progress=told.append)
    assert outcomes(sweep) == outcomes(local)
    assert sweep.table() == local.table()
    assert (told[0].done, told[-1].done, told[-1].total) == (0, 2, 2), "the other four were there"
    again = durawarp.sweep(L2, results=results, executor=Refuses())
    assert outcomes(again) == outcomes(local), "nothing is left to run"


class Refuses:
    """An executor that must not be asked."""

    def submit(self, *_: object) -> Any:
        raise AssertionError("nothing is to be run")


def test_workers_find_files_from_another_folder(
    mine: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine()
    (tmp_path / "my.toml").write_text('inherits = "agpm-table4"\nsm = { count = 2 }\n')
    (tmp_path / "sweep.toml").write_text(
        'schema = 1\nname = "mine"\n[base]\nmachine = "my.toml"\nworkload = "./mine"\nprofile = "ci"\n'
    )
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), os.chdir, ("/",)) as pool:
        monkeypatch.chdir(tmp_path)
        sweep = durawarp.sweep("sweep.toml", results="results", executor=pool)
    assert [point["state"] for point in sweep] == ["good"]


class Dies:
    """An executor whose worker dies at the second of four points."""

    def __init__(self) -> None:
        self.asked = 0

    def submit(self, fn: Callable[[Any], Any], task: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.asked += 1
        if self.asked == 2:
            future.set_exception(ConnectionError("the worker is gone"))
        else:
            future.set_result(fn(json.loads(json.dumps(task))))
        return future


def test_a_worker_that_dies_costs_its_point_only(tmp_path: Path) -> None:
    results = tmp_path / "results"
    with pytest.raises(durawarp.ExecutorFailed, match="1 of 4 points .*ConnectionError: the worker is gone") as raised:
        durawarp.sweep(FIRST, results=results, executor=Dies())
    assert len(raised.value.points) == 1
    after = durawarp.sweep(FIRST, results=results, dry_run=True)
    assert [point["state"] for point in after] == ["good", "missing", "good", "good"]
    assert {point["state"] for point in durawarp.sweep(FIRST, results=results)} == {"good"}


class Stale:
    """An executor whose workers have another version: their keys differ."""

    def submit(self, fn: Callable[[Any], Any], task: dict[str, Any]) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn({**task, "key": "0" * 64}))
        except durawarp.Error as error:
            future.set_exception(error)
        return future


def test_a_worker_of_another_version_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(durawarp.ExecutorFailed, match="another version of durawarp"):
        durawarp.sweep(FIRST, results=tmp_path / "results", executor=Stale())


class Never:
    """An executor that never runs anything."""

    def __init__(self) -> None:
        self.futures: list[Future[Any]] = []

    def submit(self, *_: object) -> Future[Any]:
        self.futures.append(Future())
        return self.futures[-1]


def test_ctrl_c_cancels_what_waits_on_an_executor() -> None:
    never = Never()
    with interrupted(0.3):
        durawarp.sweep(L2, results=None, executor=never)
    assert len(never.futures) == 6 and all(future.cancelled() for future in never.futures)
