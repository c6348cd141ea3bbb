"""Durawarp: a fast, deterministic simulator of GPUs and CPUs with persistent memory.

Functions and arguments are named as commands and options of the program ``durawarp``, and give the same
results. Outcomes and reports are dicts, as ``--json`` writes them; outcomes have typed attributes, too. :func:`frame`
and :meth:`Sweep.frame` make frames of pandas or polars.

>>> import durawarp
>>> outcome = durawarp.run("vecadd", profile="ci", scheme="strict")
>>> outcome["verification"]["passed"]
True
"""

from importlib.metadata import version as _version

from ._errors import Defect, Error, ExecutorFailed, Fault, InputError, ResultsError, RunFailed
from ._frames import frame, metrics, table
from ._outcome import Counter, Launch, Outcome, Outcomes, Parameter, Time
from ._progress import Progress
from ._runs import check, compare, crash, resume, run, stalls, summary
from ._studies import Differences, Explanation, Judged, Reproduction, bisect, diff, explain, read, reproduce
from ._sweep import Sweep, sweep

__version__ = _version("durawarp")

__all__ = [
    "Counter",
    "Defect",
    "Differences",
    "Error",
    "ExecutorFailed",
    "Explanation",
    "Fault",
    "InputError",
    "Judged",
    "Launch",
    "Outcome",
    "Outcomes",
    "Parameter",
    "Progress",
    "Reproduction",
    "ResultsError",
    "RunFailed",
    "Sweep",
    "Time",
    "bisect",
    "check",
    "compare",
    "crash",
    "diff",
    "explain",
    "frame",
    "metrics",
    "read",
    "reproduce",
    "resume",
    "run",
    "stalls",
    "summary",
    "sweep",
    "table",
]
