"""Results as rows, and as frames of pandas or polars."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from . import _native

Library = Literal["pandas", "polars"]


def metrics() -> list[dict[str, str]]:
    """Every metric: its ``name``, its ``unit`` and its ``meaning``."""
    found: list[dict[str, str]] = json.loads(_native.metrics())
    return found


def _plain(value: float | None) -> int | float | None:
    return int(value) if value is not None and value.is_integer() else value


def table(
    outcomes: Mapping[str, Any] | Iterable[Mapping[str, Any]], metrics: Sequence[str] | None = None
) -> list[dict[str, Any]]:
    """A row for each outcome of :func:`run` or :func:`compare`: what ran, and the metrics that are named.

    Without names they are those of a sweep file that names none: cycles, IPC and the traffic of DRAM and NVM.
    """
    names = _native.default_metrics() if metrics is None else list(metrics)
    rows = []
    for outcome in [outcomes] if isinstance(outcomes, Mapping) else outcomes:
        workload = outcome["workload"]
        values = _native.metric_values(json.dumps(outcome), names)
        rows.append(
            {
                "machine": outcome["machine"]["name"],
                "scheme": outcome.get("scheme_variant") or outcome["scheme"],
                "workload": workload["workload"],
                "profile": workload["profile"],
                "seed": workload["seed"],
                **{name: _plain(value) for name, value in zip(names, values)},
            }
        )
    return rows


def framed(rows: list[dict[str, Any]], columns: list[str] | None, library: Library | None) -> Any:
    """Rows as a frame; of pandas where it is installed, else of polars, unless one is named."""
    if library is None:
        library = "pandas" if importlib.util.find_spec("pandas") or not importlib.util.find_spec("polars") else "polars"
    if library == "pandas":
        import pandas

        return pandas.DataFrame(rows, columns=columns)
    if library == "polars":
        import polars

        # Types follow from all rows: a column may begin with points that have no value.
        return polars.DataFrame(rows, schema=None if rows else columns, infer_schema_length=None)
    raise ValueError(f"library: expected 'pandas' or 'polars', got {library!r}")


def frame(
    outcomes: Mapping[str, Any] | Iterable[Mapping[str, Any]],
    metrics: Sequence[str] | None = None,
    *,
    library: Library | None = None,
) -> Any:
    """As :func:`table`, as a frame of pandas or polars."""
    return framed(table(outcomes, metrics), None, library)
