"""Frames of pandas and of polars hold what the rows hold."""

from __future__ import annotations

import math
from typing import Any

import pytest
from conftest import L2

import durawarp

SPEC = {**L2, "axis": [*L2["axis"], {"key": "agpm.threshold_logs", "values": [1000, 5000]}]}
"""Eight points; a column that does not apply to the first."""


def numbers(column: Any) -> list[float | None]:
    return [None if x is None or math.isnan(x) else float(x) for x in column]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_of_a_sweep_has_its_rows(library: Any) -> None:
    sweep = durawarp.sweep(SPEC, results=None)
    for wide in (True, False):
        rows, frame = sweep.table(wide=wide), sweep.frame(wide=wide, library=library)
        assert type(frame).__module__.startswith(library)
        assert list(frame.columns) == list(rows[0]) and len(frame) == len(rows) == (8 if wide else 16)
        for name in ("agpm.threshold_logs", *(["cycles", "cycles.relative"] if wide else ["value", "relative"])):
            assert numbers(frame[name]) == [row[name] for row in rows]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_of_outcomes_has_a_row_each(library: Any) -> None:
    outcomes = durawarp.compare("vecadd", ["strict"], params={"N": 64})
    frame = durawarp.frame(outcomes, ["cycles", "sm.ctas"], library=library)
    assert list(frame["scheme"]) == ["base", "strict"] and list(frame["sm.ctas"]) == [1, 1]
    assert list(frame["cycles"]) == [outcome["time"]["core_cycles"] for outcome in outcomes]
    assert len(durawarp.frame(outcomes[0], library=library)) == 1


def test_every_metric_has_a_unit_and_a_meaning_and_unknown_ones_are_told() -> None:
    metrics = {metric["name"]: metric for metric in durawarp.metrics()}
    assert metrics["ipc"]["unit"] == "warp instructions/core cycle" and metrics["ipc"]["meaning"]
    outcome = durawarp.run("vecadd", params={"N": 64})
    with pytest.raises(durawarp.InputError) as raised:
        durawarp.table(outcome, ["cycle", "ips"])
    assert [fault.help for fault in raised.value.faults] == ["did you mean `cycles`?", "did you mean `ipc`?"]
    with pytest.raises(ValueError, match="library"):
        durawarp.frame(outcome, library="numpy")  # type: ignore[arg-type]
