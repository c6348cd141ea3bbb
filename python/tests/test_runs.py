"""Runs, crash tests, comparisons and checks: the numbers of the command line, errors, Ctrl-C, the lock."""

from __future__ import annotations

import json
import pickle
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import alike, interrupted

import durawarp
from durawarp import Progress

LONG = {"workload": "gemm", "progress": False}
"""Half a minute, of a program that is optimised."""


def test_a_run_is_what_the_command_line_writes(program: str, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    words = ["--profile", "ci", "--scheme", "agpm", "--set", "l2.slice_kb=64", "--set", "agpm.threshold_logs=100"]
    subprocess.run([program, "run", "atax", *words, "--json", str(file), "--quiet"], check=True)
    changes = {"l2.slice_kb": 64, "agpm.threshold_logs": 100}
    outcome = durawarp.run("atax", profile="ci", scheme="agpm", set=changes)
    assert alike(outcome) == alike(json.loads(file.read_text()))


def test_a_crash_test_is_what_the_command_line_writes(program: str, tmp_path: Path) -> None:
    file = tmp_path / "crash.json"
    words = ["--scheme", "store+clwb", "--flag-barrier", "paper"]
    ended = subprocess.run([program, "crash", "atax", *words, "--json", str(file), "--quiet"], capture_output=True)
    assert ended.returncode == 3
    report = durawarp.crash("atax", scheme="store+clwb", flag_barrier="paper")
    assert report.pop("holds") is False
    written = json.loads(file.read_text())
    for one in (report, written):
        one["outcome"] = alike(one["outcome"])
        del one["wall_s"]
    assert report == written


def test_undo_logging_survives_and_without_its_barrier_does_not() -> None:
    safe = durawarp.crash("atax", scheme="store+clwb", double=True)
    assert safe["holds"] and safe["transactions"] > 0
    hole = durawarp.crash("atax", scheme="store+clwb", flag_barrier="paper")
    assert not hole["holds"] and hole["overtaking"]["found"]


def test_words_and_sets_and_values_are_read() -> None:
    outcome = durawarp.run("vecadd", params={"N": 64}, seed=7, set={"persist.domain": "media"})
    workload = outcome["workload"]
    assert (workload["seed"], workload["params"]["N"]) == (7, 64)
    assert outcome["machine"]["parameters"]["persist.domain"]["value"] == "media"
    assert durawarp.run("vecadd", params={"N": 64}, seed=8)["memory_digest"] != outcome["memory_digest"]


def test_a_program_of_cpus_runs() -> None:
    outcome = durawarp.run("spin_counter", profile="ci")
    assert outcome["process"]["exit_code"] == 0 and outcome["end"] == {"kind": "finished"}


def test_a_run_that_is_cut_is_no_failure() -> None:
    outcome = durawarp.run("vecadd", profile="ci", max_cycles=100)
    assert (outcome["end"]["kind"], outcome["time"]["core_cycles"], outcome["verification"]) == ("cut", 100, None)


def test_schemes_are_compared_base_first() -> None:
    outcomes = durawarp.compare("vecadd", ["strict", "nt-store"], params={"N": 256}, set={"sm.count": 2})
    assert [outcome["scheme"] for outcome in outcomes] == ["base", "strict", "nt-store"]
    rows = durawarp.table(outcomes, ["cycles"])
    assert rows[0]["cycles"] < rows[1]["cycles"]
    # A change of a scheme's parameter is for that scheme.
    changed = durawarp.compare("vecadd", "agpm", params={"N": 256}, set={"agpm.threshold_logs": 7})
    assert changed[1]["scheme_parameters"]["agpm.threshold_logs"]["value"] == 7


def test_runs_of_a_comparison_are_kept(tmp_path: Path) -> None:
    results = tmp_path / "results"
    once, again = (durawarp.compare("vecadd", "strict", params={"N": 64}, results=results) for _ in range(2))
    assert once == again, "the same host times: nothing ran again"


def test_results_do_not_depend_on_threads() -> None:
    report = durawarp.check("vecadd", params={"N": 512}, set={"sm.count": 4}, threads=[1, 3])
    assert report["equal"] and report["failure"] is None
    assert len(report["ways"]) == 6 and {way["digest"] for way in report["ways"]} == {report["digest"]}


def test_every_fault_of_an_input_is_told_with_its_place(tmp_path: Path) -> None:
    machine = tmp_path / "my.toml"
    machine.write_text('inherits = "agpm-table4"\n[l2]\nslice_k = 256\nways = 0\n')
    with pytest.raises(durawarp.InputError) as raised:
        durawarp.run("vecad", machine=machine, profile="ci")
    faults = raised.value.faults
    assert len(faults) == 3 and str(raised.value).count("\n") == 2
    unknown = next(fault for fault in faults if "slice_k" in fault.message)
    assert (unknown.file, unknown.line, unknown.column) == (str(machine), 3, 1)
    assert unknown.help == "did you mean `l2.slice_kb`?" and unknown.source_line == "slice_k = 256"
    workload = next(fault for fault in faults if "vecad" in fault.message)
    assert workload.line is None and "vecadd" in (workload.help or "")
    assert str(unknown) in str(raised.value)
    assert isinstance(raised.value, ValueError) and isinstance(raised.value, durawarp.Error)


def test_errors_come_whole_from_another_process() -> None:
    fault = ("my.toml", 3, 1, "unknown key", "did you mean?", "slice_k = 256")
    there = durawarp.InputError("my.toml:3:1: unknown key", [fault])
    here = pickle.loads(pickle.dumps(there))
    assert (str(here), here.faults) == (str(there), there.faults)
    failed = pickle.loads(pickle.dumps(durawarp.RunFailed("deadlock", {"schema": 3})))
    assert (str(failed), failed.outcome) == ("deadlock", {"schema": 3})
    lost = pickle.loads(pickle.dumps(durawarp.ExecutorFailed("1 of 2", ["a point"])))
    assert (str(lost), lost.points) == ("1 of 2", ["a point"])


def test_a_wrong_result_is_an_exception_with_the_outcome(mine: Callable[..., Path]) -> None:
    folder = mine("a[idx] + b[idx]", "a[idx] - b[idx]")
    with pytest.raises(durawarp.RunFailed, match="the result is wrong") as raised:
        durawarp.run(folder, profile="ci")
    assert raised.value.outcome is not None and not raised.value.outcome["verification"]["passed"]
    assert not isinstance(raised.value, durawarp.Defect)


@pytest.mark.parametrize(
    "call",
    [
        lambda: durawarp.run("vecadd", threads=-1),
        lambda: durawarp.run("vecadd", threads=5000),
        lambda: durawarp.crash("vecadd", points="some"),
        lambda: durawarp.crash("vecadd", claim="all"),
        lambda: durawarp.check("vecadd", epoch_cycles=0),
    ],
)
def test_arguments_out_of_range_are_values_that_are_wrong(call: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="expected"):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: durawarp.run(**LONG),
        lambda: durawarp.crash(**LONG, profile="default", scheme="store+clwb"),
        lambda: durawarp.compare(**LONG, profile="default"),
        lambda: durawarp.check(**LONG, profile="default"),
    ],
    ids=["run", "crash", "compare", "check"],
)
def test_ctrl_c_works_within_a_second(call: Callable[[], object]) -> None:
    with interrupted(1.0):
        call()


def test_other_threads_go_on_while_a_run_simulates() -> None:
    ticks: list[float] = []
    over = threading.Event()

    def tick() -> None:
        while not over.wait(0.005):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    began = time.monotonic()
    durawarp.run("gemm", params={"NI": 128, "NJ": 128, "NK": 128}, threads=1, progress=False)
    ended = time.monotonic()
    over.set()
    thread.join()
    gaps = [b - a for a, b in zip([began, *ticks], [*ticks, ended])]
    assert ended - began > 0.2, "long enough to tell"
    assert max(gaps) < 0.2


def test_progress_is_told_by_the_thread_that_called() -> None:
    told: list[Progress] = []
    threads = set()

    def progress(now: Progress) -> None:
        told.append(now)
        threads.add(threading.get_ident())

    durawarp.run("gemm", params={"NI": 128, "NJ": 128, "NK": 128}, threads=1, progress=progress)
    assert threads == {threading.get_ident()}
    assert {now.what for now in told} == {"run"} and "cycles" in told[-1].text
    assert [now.done for now in told] == sorted(now.done for now in told) and told[-1].done > 0


def test_an_exception_of_progress_ends_the_run() -> None:
    def progress(_: Progress) -> None:
        raise ZeroDivisionError

    began = time.monotonic()
    with pytest.raises(ZeroDivisionError):
        durawarp.run("gemm", progress=progress)
    assert time.monotonic() - began < 2.0


def test_a_bar_is_shown_and_taken_away(capfd: pytest.CaptureFixture[str]) -> None:
    durawarp.crash("atax", scheme="store+clwb", progress=True)
    shown = capfd.readouterr().err
    assert "states allowed" in shown and "100%" in shown
    durawarp.crash("atax", scheme="store+clwb", progress=False)
    assert capfd.readouterr().err == ""


def test_the_summary_is_that_of_the_command_line(program: str) -> None:
    printed = subprocess.run([program, "run", "vecadd", "--profile", "ci"], check=True, capture_output=True, text=True)
    summary = durawarp.summary(durawarp.run("vecadd", profile="ci"))
    # Times of the host differ.
    same = [line for line in summary.splitlines() if "digest" in line or "cycles   " in line]
    assert len(same) == 3 and set(same) <= set(printed.stdout.splitlines())
