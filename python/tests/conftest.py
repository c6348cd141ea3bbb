"""What tests share: small sweeps, workloads of one's own, the program to compare with."""

from __future__ import annotations

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

L2 = {
    "name": "l2",
    "metrics": ["cycles", "ipc"],
    "baseline": {"scheme": "base"},
    "base": {"workload": "vecadd", "profile": "ci", "set": {"sm.count": 2}},
    "axis": [
        {"key": "scheme", "values": ["base", "strict", "agpm"]},
        {"key": "l2.slice_kb", "values": [64, 128]},
    ],
}
"""Six points."""


@pytest.fixture
def program() -> str:
    """The program ``durawarp``."""
    found = os.environ.get("DURAWARP")
    if not found:
        pytest.skip("DURAWARP names no program to compare with")
    return found


@pytest.fixture
def mine(tmp_path: Path) -> Callable[..., Path]:
    """Makes a workload of one's own: vecadd, with a part of its manifest in other words."""

    def make(old: str = "", new: str = "") -> Path:
        folder = tmp_path / "mine"
        shutil.copytree(ROOT / "workloads" / "vecadd", folder)
        manifest = folder / "workload.toml"
        text = manifest.read_text()
        assert old in text
        manifest.write_text(text.replace(old, new, 1))
        return folder

    return make


@contextmanager
def interrupted(after_s: float) -> Iterator[None]:
    """Ctrl-C after a time; it ends within a second."""
    sent: list[float] = []

    def send() -> None:
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(after_s, send)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        timer.cancel()
    assert sent and time.monotonic() - sent[0] < 1.0


def alike(outcome: dict[str, Any]) -> dict[str, Any]:
    """An outcome without its host, which is never the same twice."""
    return {key: value for key, value in outcome.items() if key != "host"}
