"""What can go wrong, as exceptions."""

from __future__ import annotations

from typing import Any, NamedTuple


class Fault(NamedTuple):
    """One fault of an input, with its place."""

    file: str
    """The file, or the key (``--set KEY=VALUE``, a name) that the fault is in."""
    line: int | None
    """Line from 1; none where the fault has no place in a text."""
    column: int | None
    """Column from 1, in characters."""
    message: str
    """What is wrong, and what was expected."""
    help: str | None
    """What to do about it: the nearest valid name, the valid range."""
    source_line: str
    """The text of the line; empty where there is none."""

    def __str__(self) -> str:
        place = [self.file] + [str(n) for n in (self.line, self.column) if n is not None]
        text = f"{':'.join(place)}: {self.message}" if self.file else self.message
        return f"{text} ({self.help})" if self.help else text


class Error(Exception):
    """Any error of durawarp."""


class InputError(Error, ValueError):
    """The input is wrong: machine, scheme, workload, sweep file, a key or a value. Nothing has run."""

    faults: list[Fault]
    """Everything that is wrong, in the order of files and places."""

    def __init__(self, message: str, faults: list[Any] | None = None) -> None:
        super().__init__(message, faults)
        self.faults = [Fault(*fault) for fault in faults or []]

    def __str__(self) -> str:
        return str(self.args[0])


class RunFailed(Error):
    """The simulated program failed, was blocked for ever, or its result is wrong."""

    outcome: dict[str, Any] | None
    """What is known of the run."""

    def __init__(self, why: str, outcome: dict[str, Any] | None = None) -> None:
        super().__init__(why, outcome)
        self.outcome = outcome

    def __str__(self) -> str:
        return str(self.args[0])


class Defect(RunFailed):
    """The simulator itself failed: please report it."""


class ResultsError(Error, OSError):
    """A folder of results cannot be read or written, or is something else."""


class ExecutorFailed(Error):
    """Points came back from an executor without a result. The others are kept: sweep again."""

    points: list[str]
    """Labels of these points."""

    def __init__(self, message: str, points: list[str] | None = None) -> None:
        super().__init__(message, points)
        self.points = points or []

    def __str__(self) -> str:
        return str(self.args[0])
