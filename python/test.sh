#!/usr/bin/env bash
# The Python module: builds the wheel, installs it with what its tests need, and tests it: pytest, the notebook, dask, the
# types. Needs cargo, python3 (3.10 or later) with venv, and pip's registry. An argument is the path of a durawarp
# binary, whose results are compared with the module's.
# Exit codes: 0 all tests pass; 77 Python or its packages cannot be had here; else a test fails.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# = 0 ] || DURAWARP=$(realpath "$1")
export DURAWARP=${DURAWARP:-}

skip() { echo "python: SKIPPED: $*"; exit 77; }

command -v python3 >/dev/null || skip "no python3"
python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' || skip "python3 is older than 3.10"

# Both stay: a second run installs the wheel only. The crate's own builds have this folder, too, so that what crates
# depend on is compiled once.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
place=$CARGO_TARGET_DIR/python
venv=$place/venv
wheels=$place/wheels
mkdir -p "$place"
packages=(pandas polars pytest nbclient ipykernel distributed tqdm mypy)
wanted="$(python3 --version) maturin ${packages[*]}"
pip() { timeout 300 "$venv/bin/pip" --quiet --disable-pip-version-check "$@" </dev/null; }
installing=
if [ "$(cat "$place/packages" 2>/dev/null)" != "$wanted" ]; then
    rm -rf "$venv" "$place/packages"
    python3 -m venv "$venv" >/dev/null 2>&1 || skip "python3 cannot make a venv"
    pip install maturin >/dev/null 2>&1 || skip "pip cannot install maturin"
    # While the wheel is built.
    pip install "${packages[@]}" >/dev/null 2>&1 &
    installing=$!
fi

cargo fmt --manifest-path python/Cargo.toml --check
rm -rf "$wheels"
"$venv/bin/maturin" build --quiet --profile dev --locked --manifest-path python/Cargo.toml \
    --interpreter "$venv/bin/python" --compatibility linux --out "$wheels" >/dev/null
if [ -n "$installing" ]; then
    wait "$installing" || skip "pip cannot install ${packages[*]}"
    echo "$wanted" > "$place/packages"
fi
pip install --no-deps --force-reinstall "$wheels"/*.whl

# Elsewhere, so that the package is the installed one.
tests=$PWD/python/tests
cd "$place"
"$venv/bin/python" -m pytest --quiet -p no:cacheprovider --strict-markers "$tests"
