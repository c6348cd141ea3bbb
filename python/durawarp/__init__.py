"""Durawarp: a fast, deterministic simulator of GPUs and CPUs with persistent memory.

Functions and arguments are named as commands and options of the program ``durawarp``, and give the same
results. Outcomes and reports are plain dicts, as ``--json`` writes them; :func:`frame` and :meth:`Sweep.frame`
make frames of pandas or polars.

>>> import durawarp
>>> outcome = durawarp.run("vecadd", profile="ci", scheme="strict")
>>> outcome["verification"]["passed"]
True
"""

from importlib.metadata import version as _version

from ._errors import Defect, Error, ExecutorFailed, Fault, InputError, ResultsError, RunFailed
from ._frames import frame, metrics, table
from ._progress import Progress
from ._runs import check, compare, crash, run, summary
from ._sweep import Sweep, sweep

__version__ = _version("durawarp")

__all__ = [
    "Defect",
    "Error",
    "ExecutorFailed",
    "Fault",
    "InputError",
    "Progress",
    "ResultsError",
    "RunFailed",
    "Sweep",
    "check",
    "compare",
    "crash",
    "frame",
    "metrics",
    "run",
    "summary",
    "sweep",
    "table",
]
