"""What is made of outcomes and of several runs: the numbers and texts of the command line."""

from __future__ import annotations

import gzip
import json
import pickle
import subprocess
from pathlib import Path

import pytest
from conftest import alike

import durawarp

SMALL = {"params": {"N": 512}, "set": {"sm.count": 2}}


def test_an_outcome_is_a_dict_with_typed_attributes() -> None:
    outcome = durawarp.run("vecadd", **SMALL, scheme="strict")
    assert isinstance(outcome, dict) and json.loads(json.dumps(outcome)) == outcome
    assert (outcome.workload, outcome.scheme, outcome.end, outcome.passed) == ("vecadd", "strict", "finished", True)
    assert outcome.cycles == outcome["time"]["core_cycles"] > 0
    assert outcome.time.seconds == pytest.approx(outcome["time"]["ps"] * 1e-12)
    [launch] = outcome.launches
    assert (launch.kernel, launch.block) == ("vecadd", (256, 1, 1)) and 0 < launch.length.ticks <= outcome.time.ticks
    assert outcome.parameters["sm.count"].value == 2 and "--set" in outcome.parameters["sm.count"].source
    issued = outcome.counter("sm", "warp_instructions")
    assert len(issued.rows) == 2 and issued.total == sum(issued.rows) > 0 and "(warp instructions)" in issued.doc
    with pytest.raises(KeyError, match="there are sm, "):
        outcome.counter("smx", "warp_instructions")
    assert len(outcome.digest) == 16 and outcome.caveats and outcome.warnings == []
    again = pickle.loads(pickle.dumps(outcome))
    assert again == outcome and again.cycles == outcome.cycles
    assert "vecadd" in repr(outcome) and str(outcome.cycles) in repr(outcome)


def test_an_unchecked_run_has_no_verdict() -> None:
    cut = durawarp.run("vecadd", profile="ci", max_cycles=100)
    assert (cut.end, cut.passed, cut.cycles) == ("cut", None, 100)


def test_differences_are_those_of_the_command_line(program: str, tmp_path: Path) -> None:
    files = [tmp_path / "one.json", tmp_path / "other.json"]
    runs = [durawarp.run("vecadd", params={"N": 512}, set={"l2.slice_kb": kb}) for kb in (64, 128)]
    for file, run in zip(files, runs):
        file.write_text(json.dumps(run))
    written = tmp_path / "diff.json"
    ended = subprocess.run([program, "diff", *files, "--json", written], capture_output=True, text=True)
    found = durawarp.diff(*runs)
    assert (ended.returncode, found.equal) == (1, False)
    assert found == json.loads(written.read_text()) and found.text == ended.stdout
    assert durawarp.diff(files[0], files[1]) == found
    assert durawarp.diff(runs[0], files[0]).equal


def test_a_file_that_is_no_outcome_is_told_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    file.write_text('{\n  "schema": "three"\n}\n')
    with pytest.raises(durawarp.InputError, match="no result of a run") as raised:
        durawarp.read(file)
    assert raised.value.faults[0].line == 2


def test_stalls_and_comparisons_print_and_draw_as_the_command_line(program: str, tmp_path: Path) -> None:
    words = ["--set", "params.N=512", "--set", "sm.count=2"]
    for command, run in (("stalls", durawarp.stalls), ("compare", durawarp.compare)):
        file = tmp_path / f"{command}.svg"
        line = [program, command, "vecadd", "--schemes", "strict,nt-store", *words, "--svg", str(file)]
        printed = subprocess.run(line, check=True, capture_output=True, text=True).stdout
        outcomes = run("vecadd", ["strict", "nt-store"], **SMALL)
        assert [outcome.scheme for outcome in outcomes] == ["base", "strict", "nt-store"]
        # The program shows the baseline only where it is asked for.
        rows = {line.split()[0]: line for line in outcomes.text.splitlines() if line.strip()}
        for scheme in ("strict", "nt-store"):
            assert rows[scheme] in printed.splitlines(), outcomes.text
        assert outcomes.svg is not None and file.read_text()[:60] == outcomes.svg[:60]
    with pytest.raises(durawarp.InputError, match="stages of persists"):
        durawarp.stalls("spin_counter")


def test_an_explanation_is_that_of_the_command_line(program: str, tmp_path: Path) -> None:
    json_file, svg = tmp_path / "why.json", tmp_path / "why.svg"
    line = [program, "explain", "atax", "--scheme", "agpm", "--json", str(json_file), "--svg", str(svg)]
    printed = subprocess.run(line, check=True, capture_output=True, text=True).stdout
    why = durawarp.explain("atax", scheme="agpm")
    assert printed.startswith(why.text) and why.data == json.loads(json_file.read_text())
    assert (why.svg, why.csv) == (svg.read_text(), svg.with_suffix(".csv").read_text())
    assert why.outcome.scheme == "agpm"
    with pytest.raises(durawarp.InputError, match="nothing that could be explained"):
        durawarp.explain("atax", scheme="strict")
    assert "main" in durawarp.explain("hash", scheme="sync").text


def test_a_sample_is_an_estimate_with_an_interval() -> None:
    sampled = durawarp.run("gemm_tiled", profile="ci", set={"sm.count": 1}, sample=4)
    assert sampled["sampling"] is not None
    with pytest.raises(durawarp.InputError, match="from 2 to 64"):
        durawarp.run("gemm_tiled", profile="ci", sample=1)


def test_a_run_goes_on_from_its_checkpoint_bit_by_bit(tmp_path: Path) -> None:
    file = tmp_path / "half.ckpt"
    whole = durawarp.run("vecadd", profile="ci", checkpoint_at=(3000, file))
    assert file.stat().st_size > 0
    assert alike(durawarp.resume(file)) == alike(whole)
    slower = durawarp.resume(file, set={"nvm.t_rcd_ns": 320, "dram.t_rcd_ns": 320})
    assert slower["from_checkpoint"]["cycle"] >= 3000 and slower.cycles > whole.cycles
    with pytest.raises(durawarp.InputError, match="cannot become"):
        durawarp.resume(file, set={"l2.slice_kb": 64})
    with pytest.raises(durawarp.InputError, match="no checkpoint"):
        durawarp.resume(Path(durawarp.__file__))
    with pytest.raises(FileNotFoundError):
        durawarp.resume(tmp_path / "none.ckpt")


def test_a_program_of_cpus_goes_on_from_its_checkpoint_too(tmp_path: Path) -> None:
    file = tmp_path / "hash.ckpt"
    whole = durawarp.run("hash", profile="ci", scheme="sync", checkpoint_at=(30000, file))
    assert alike(durawarp.resume(file)) == alike(whole)
    slower = durawarp.resume(file, set={"nvm.t_rcd_ns": 400})
    assert slower["from_checkpoint"]["cycle"] >= 30000 and slower.cycles > whole.cycles


def test_a_checkpoint_after_the_end_is_told_and_leaves_no_file(tmp_path: Path) -> None:
    file = tmp_path / "late.ckpt"
    with pytest.raises(durawarp.RunFailed, match="the run was over at cycle") as raised:
        durawarp.run("vecadd", profile="ci", checkpoint_at=(10**9, file))
    assert not file.exists() and raised.value.outcome is not None


def test_a_timeline_is_that_of_the_command_line(program: str, tmp_path: Path) -> None:
    ours, packed, theirs = tmp_path / "ours.json", tmp_path / "ours.json.gz", tmp_path / "theirs.json"
    line = [program, "run", "vecadd", "--profile", "ci", "--timeline", str(theirs), "--quiet"]
    subprocess.run(line, check=True)
    for file in (ours, packed):
        durawarp.run("vecadd", profile="ci", timeline=file)
    assert ours.read_bytes() == theirs.read_bytes() == gzip.decompress(packed.read_bytes())
    with pytest.raises(FileNotFoundError):
        durawarp.run("gemm", timeline=tmp_path / "no" / "folder.json")


def test_writes_of_lines_are_counted_where_asked_for() -> None:
    runs = [durawarp.run("vecadd", **SMALL, scheme="strict", wear=wear) for wear in (False, True)]
    lines = [run["devices"].get("nvm_lines") for run in runs]
    assert lines[0] is None and lines[1] is not None and runs[0].digest == runs[1].digest


def test_where_two_runs_part_is_found() -> None:
    same = durawarp.bisect("vecadd", {}, **SMALL)
    assert same["equal"] and same["found"]["equal"]["events"] > 0
    parted = durawarp.bisect("vecadd", {"dram.t_cl_ns": 40}, **SMALL, epoch_cycles=200)
    assert not parted["equal"] and parted["runs"][0].startswith("vecadd")
    parting = parted["found"]["parted"]
    assert parting["component"] and parting["event"]["of"][0] != parting["event"]["of"][1]
    with pytest.raises(durawarp.InputError, match="did you mean"):
        durawarp.bisect("vecadd", {"dram.t_cl_n": 40})


def test_a_paper_is_reproduced_as_on_the_command_line(program: str, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    words = ["--figure", "table2", "--profile", "ci", "--no-store", "--out", str(folder)]
    printed = subprocess.run([program, "reproduce", "agpm", *words], check=True, capture_output=True, text=True).stdout
    found = durawarp.reproduce("agpm", "table2", profile="ci", results=None)
    assert found.complete and found.failed == [] and printed == found.text
    assert {name: (folder / name).read_text() for name in found.files} == found.files
    assert found.table("table2") and found.met + found.not_met + found.not_applicable == len(found.asks)
    found.save(tmp_path / "again")
    assert (tmp_path / "again" / "agpm.md").read_text() == found.files["agpm.md"]
    with pytest.raises(durawarp.InputError, match="no figure `fig99`"):
        durawarp.reproduce("agpm", "fig99")
