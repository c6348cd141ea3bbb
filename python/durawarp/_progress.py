"""Progress: as calls of a function, or as a bar of tqdm, which is one of ipywidgets in a notebook."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple


class Progress(NamedTuple):
    """How far something is."""

    what: str
    """What is under way: ``run``, ``points``, ``states left``, ..."""
    done: int
    """What is done: instructions, points, states."""
    total: int | None
    """Of so many, if that is known."""
    left_s: float | None
    """Seconds left, if that is known."""
    text: str
    """More about it."""


Show = bool | Callable[[Progress], object] | None
"""Whether to show progress: a function that is called with it some times a second, ``True`` for a bar,
``False`` for nothing, ``None`` for a bar where tqdm is installed and somebody looks."""

Told = Callable[[str, int, int | None, float | None, str], object]


class _Bar:
    """A bar for each thing that is under way."""

    def __init__(self, tqdm: Any) -> None:
        self._tqdm = tqdm
        self._bar: Any = None

    def __call__(self, now: Progress) -> None:
        if self._bar is None or self._bar.desc != now.what:
            self.close()
            scaled = now.what == "run"
            self._bar = self._tqdm(desc=now.what, total=now.total, unit="instr" if scaled else "", unit_scale=scaled)
        self._bar.total = now.total
        self._bar.n = now.done
        self._bar.set_postfix_str(now.text)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def _tqdm() -> Any:
    with warnings.catch_warnings():
        # Without ipywidgets it is a bar of text.
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm

    return tqdm


def _looked_at() -> bool:
    return "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())


@contextlib.contextmanager
def shown(progress: Show) -> Iterator[Told | None]:
    """What the native half calls; a bar is taken away at the end."""
    call: Any = progress
    if progress is None:
        call = False
        if _looked_at():
            with contextlib.suppress(ImportError):
                call = _Bar(_tqdm())
    elif progress is True:
        call = _Bar(_tqdm())
    try:
        yield (lambda *now: call(Progress(*now))) if call is not False else None
    finally:
        if isinstance(call, _Bar):
            call.close()
