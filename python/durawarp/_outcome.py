"""Outcomes: the dict of ``--json``, whose most asked parts are attributes with types, too."""

from __future__ import annotations

from typing import Any, NamedTuple


class Time(NamedTuple):
    """A time of the simulated machine."""

    ticks: int
    ps: int
    core_cycles: int

    @property
    def seconds(self) -> float:
        return self.ps / 1e12


class Launch(NamedTuple):
    """One launch of a kernel."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    start: Time
    length: Time


class Parameter(NamedTuple):
    """A parameter of the machine or of a scheme, as resolved."""

    value: Any
    source: str


class Counter(NamedTuple):
    """A counter of all components of a kind."""

    rows: tuple[int, ...]
    """A value a component."""
    doc: str
    """Meaning, and unit in brackets."""

    @property
    def total(self) -> int:
        return sum(self.rows)


def _time(value: dict[str, int]) -> Time:
    return Time(value["ticks"], value["ps"], value["core_cycles"])


def _three(values: list[int]) -> tuple[int, int, int]:
    x, y, z = values
    return x, y, z


class Outcome(dict[str, Any]):
    """What came of a run: a dict, as ``durawarp run --json`` writes it.

    The attributes are views of it: ``outcome.cycles`` is ``outcome["time"]["core_cycles"]``.
    """

    __slots__ = ()

    @property
    def workload(self) -> str:
        name: str = self["workload"]["workload"]
        return name

    @property
    def profile(self) -> str:
        name: str = self["workload"]["profile"]
        return name

    @property
    def machine(self) -> str:
        name: str = self["machine"]["name"]
        return name

    @property
    def scheme(self) -> str:
        """Name of the scheme; of its file where that has a name of its own."""
        name: str = self.get("scheme_variant") or self["scheme"]
        return name

    @property
    def end(self) -> str:
        """``finished``, ``cut``, ``stopped``, ``failed``, ``deadlock``, ``repeats`` or ``panicked``."""
        kind: str = self["end"]["kind"]
        return kind

    @property
    def passed(self) -> bool | None:
        """Whether the result is right; None where it was not checked."""
        check = self["verification"]
        return None if check is None else bool(check["passed"])

    @property
    def time(self) -> Time:
        return _time(self["time"])

    @property
    def cycles(self) -> int:
        """Core cycles."""
        return self.time.core_cycles

    @property
    def launches(self) -> list[Launch]:
        return [
            Launch(one["kernel"], _three(one["grid"]), _three(one["block"]), _time(one["start"]), _time(one["length"]))
            for one in self["launches"]
        ]

    @property
    def parameters(self) -> dict[str, Parameter]:
        """Every parameter of the machine and of the scheme by ``table.key``."""
        every = {**self["machine"]["parameters"], **self["scheme_parameters"]}
        return {key: Parameter(of["value"], of["source"]) for key, of in every.items()}

    def counter(self, kind: str, name: str) -> Counter:
        """A counter of a kind of component: ``outcome.counter("sm", "warp_instructions").total``.

        Raises KeyError where there is none, with those that there are.
        """
        kinds = {table["kind"]: table for table in self["counters"]}
        if kind not in kinds:
            raise KeyError(f"no component `{kind}`; there are {', '.join(kinds)}")
        table = kinds[kind]
        if name not in table["names"]:
            raise KeyError(f"no counter `{name}` of `{kind}`; there are {', '.join(table['names'])}")
        at = table["names"].index(name)
        return Counter(tuple(row[at] for row in table["rows"]), table["docs"][at])

    @property
    def warnings(self) -> list[str]:
        """What is odd about the program."""
        return [warning["message"] for warning in self["warnings"]]

    @property
    def caveats(self) -> list[str]:
        """What may make the result worth less than it looks."""
        return [caveat["text"] for caveat in self["validity"]]

    @property
    def digest(self) -> str:
        """Stands for every event and the final state."""
        digest: str = self["digest"]
        return digest

    @property
    def memory_digest(self) -> str:
        """Stands for the final content of every buffer."""
        digest: str = self["memory_digest"]
        return digest

    def __repr__(self) -> str:
        ran = f"{self.workload} ({self.profile}) on {self.machine}, scheme {self.scheme}"
        return f"<Outcome of {ran}: {self.end}, {self.cycles} cycles>"


class Outcomes(list[Outcome]):
    """Outcomes of a comparison, the baseline first, with what the program prints and draws of them."""

    text: str
    """The table of ``durawarp compare`` or ``durawarp stalls``."""
    svg: str | None
    """Its figure; None where there is nothing to draw."""
    csv: str | None
    """The data of the figure."""

    def __init__(self, outcomes: list[Outcome], text: str, drawn: tuple[str, str] | None) -> None:
        super().__init__(outcomes)
        self.text = text
        self.svg, self.csv = drawn or (None, None)
