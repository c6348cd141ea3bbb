"""The native half: what crosses is plain data and JSON text. Not for users."""

from os import PathLike
from typing import TypedDict, final

from ._progress import Told

class Request(TypedDict):
    keys: list[tuple[str, str]]
    args: list[str]
    persistent: bool
    reference: bool
    small: bool

class Ask(TypedDict):
    points: str
    double: bool
    actual_only: bool
    claim: str | None
    resume: int
    keep: int

class Work(TypedDict):
    jobs: int
    memory_gib: int | None
    results: str | None
    shard: tuple[int, int] | None
    keep_failed: bool

class Worth(TypedDict):
    state: str
    why: str | None
    outcome: str | None

class Compared(TypedDict):
    scheme: str
    worth: Worth

def run(request: Request, threads: int, progress: Told | None) -> tuple[Worth, list[str]]: ...
def crash(request: Request, ask: Ask, threads: int, progress: Told | None) -> tuple[bool, str, list[str]]: ...
def compare(
    request: Request, schemes: list[str], work: Work, progress: Told | None
) -> tuple[list[Compared], list[str]]: ...
def check(request: Request, threads: list[int], epoch_cycles: int, progress: Told | None) -> str: ...
def metrics() -> str: ...
def metric_values(outcome: str, names: list[str]) -> list[float | None]: ...
def summary(outcome: str) -> str: ...
def run_point(key: str, label: str, keys: list[tuple[str, str]], reference: bool) -> Worth: ...
@final
class Plan:
    @staticmethod
    def load(path: str | PathLike[str]) -> Plan: ...
    @staticmethod
    def read(json: str, folder: str | PathLike[str]) -> Plan: ...
    @property
    def name(self) -> str: ...
    def run(self, work: Work, progress: Told | None) -> None: ...
    def to_run(self, work: Work) -> list[tuple[int, str, str, list[tuple[str, str]], bool]]: ...
    def keeper(self, folder: str | PathLike[str]) -> Keeper: ...
    def results(self, folder: str | PathLike[str]) -> Results: ...

@final
class Keeper:
    def keep(self, point: int, worth: Worth) -> None: ...

@final
class Results:
    def points(self) -> str: ...
    def outcome(self, point: int) -> str | None: ...
    def table(self, metrics: list[str] | None, wide: bool) -> tuple[list[str], str]: ...
    def figures(self) -> list[tuple[str, str]]: ...
