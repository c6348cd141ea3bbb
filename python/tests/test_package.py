"""The package: its version, its types, its page, its notebook."""

from __future__ import annotations

import doctest
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

import durawarp


def test_the_wheel_has_the_version_of_the_crate() -> None:
    versions = [
        re.findall(r'(?m)^version = "(.*)"$', (ROOT / file).read_text())[0]
        for file in ("Cargo.toml", "python/Cargo.toml")
    ]
    simulated = durawarp.run("vecadd", params={"N": 64})["version"]
    assert {durawarp.__version__, simulated, *versions} == {durawarp.__version__}


def test_the_package_is_typed_and_wrong_arguments_are_noticed(tmp_path: Path) -> None:
    package = Path(durawarp.__file__).parent
    assert (package / "py.typed").exists() and (package / "_native.pyi").exists()
    user = tmp_path / "user.py"
    user.write_text(
        "import durawarp\n"
        'cycles: int = durawarp.run("gemm", set={"l2.slice_kb": 64}, progress=True)["time"]["core_cycles"]\n'
        'states: list[str] = [point["state"] for point in durawarp.sweep("l2.toml")]\n'
        'durawarp.run("gemm", threads="many")  # wrong\n'
        'durawarp.sweep("l2.toml", executor=3)  # wrong\n'
    )
    config = ["--config-file", str(ROOT / "python" / "pyproject.toml"), "--no-error-summary"]

    def checked(what: Path) -> str:
        mypy = [sys.executable, "-m", "mypy", *config, str(what)]
        done = subprocess.run(mypy, capture_output=True, text=True, cwd=tmp_path)
        return done.stdout + done.stderr

    assert checked(ROOT / "python" / "durawarp") == ""
    told = checked(user)
    wrong = re.findall(r"user\.py:(\d+): error: Argument", told)
    assert wrong == ["4", "5"] and told.count("error:") == 2, told


def test_what_functions_have_in_common_has_one_default_and_one_type() -> None:
    of_run = inspect.signature(durawarp.run).parameters
    subject = "machine profile set params seed inputs args persistent instrument flag_barrier loop_log reload".split()
    studies = (durawarp.crash, durawarp.compare, durawarp.stalls, durawarp.explain, durawarp.bisect, durawarp.check)
    for function in studies:
        own = inspect.signature(function).parameters
        assert own.keys() >= {"workload", *subject}, function.__name__
        common = own.keys() & of_run.keys()
        # How many ways are compared, and not how many threads there are.
        common -= {"threads"} if function is durawarp.check else set()
        for name in common:
            assert own[name] == of_run[name], f"{function.__name__}: {own[name]}, and run: {of_run[name]}"


def test_the_stub_of_the_native_half_is_true() -> None:
    stubtest = [sys.executable, "-m", "mypy.stubtest", "durawarp._native", "--concise", "--ignore-missing-stub"]
    checked = subprocess.run(stubtest, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def sessions(text: str) -> list[str]:
    return re.findall(r"(?ms)^```python\n(.*?)^```$", text)


@pytest.mark.parametrize("page", ["docs/python.md", "python/durawarp/__init__.py"])
def test_the_sessions_of_a_page_print_what_is_shown(page: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = (ROOT / page).read_text()
    found = sessions(text) if page.endswith(".md") else [durawarp.__doc__ or ""]
    assert found and all(">>> " in session for session in found)
    for file in ("l2.toml",):
        (tmp_path / file).write_text((ROOT / "benches" / "sweeps" / file).read_text())
    monkeypatch.chdir(tmp_path)
    # A page is one session.
    test = doctest.DocTestParser().get_doctest("\n".join(found), {}, page, page, 0)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    report: list[str] = []
    runner.run(test, out=report.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(report)


def test_the_notebook_runs_from_its_first_cell_to_its_last(tmp_path: Path) -> None:
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(ROOT / "python" / "examples" / "schemes.ipynb", as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "it is kept without outputs"
    NotebookClient(notebook, timeout=60, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    kinds = {kind for output in outputs for kind in output.get("data", {})}
    assert {"text/html", "image/svg+xml"} <= kinds, "a frame and a figure"
