#!/usr/bin/env bash
# A sweep's results as CSV, JSON and Parquet, read by polars and by DuckDB: all three hold what the program's own CSV
# holds, number by number. Needs python3 and the path of a durawarp binary built with --features parquet.
# Exit codes: 0 they do; 77 the two cannot be had here; else they do not.
set -euo pipefail
program=$(realpath "${1:?the path of durawarp}")

skip() { echo "tables: SKIPPED: $*"; exit 77; }

command -v python3 >/dev/null || skip "no python3"
S=$(mktemp -d)
trap 'rm -rf "$S"' EXIT
python3 -m venv "$S/venv" >/dev/null 2>&1 || skip "python3 cannot make a venv"
timeout 300 "$S/venv/bin/pip" install --quiet --disable-pip-version-check polars duckdb >/dev/null 2>&1 </dev/null ||
    skip "pip cannot install polars and duckdb"

cd "$S"
cat > sweep.toml <<'SWEEP'
schema = 1
name = "ci"
baseline = { scheme = "base" }
[base]
workload = "vecadd"
profile = "ci"
set = { "sm.count" = 1 }
[[axis]]
key = "scheme"
values = ["base", "strict", "agpm"]
[[axis]]
key = "agpm.threshold_logs"
values = [1000, 5000]
SWEEP
"$program" sweep run sweep.toml --quiet
for form in long wide; do
    wide=()
    [ "$form" = long ] || wide=(--wide)
    "$program" sweep table sweep.toml "${wide[@]}" --csv "$form.csv" --json "$form.json" --parquet "$form.parquet"
done

"$S/venv/bin/python" - <<'PYTHON'
import csv, duckdb, polars

def numbers(rows, name):
    return [None if row[name] in ("", None) else float(row[name]) for row in rows]

for form, column in [("long", "value"), ("long", "relative"), ("wide", "cycles"), ("wide", "ipc.relative"),
                     ("wide", "agpm.threshold_logs")]:
    plain = list(csv.DictReader(open(f"{form}.csv", newline="")))
    expected = numbers(plain, column)
    total = sum(x for x in expected if x is not None)
    assert len(plain) == (4 if form == "wide" else 32) and total > 0, (form, column, plain)
    frames = {
        "csv": polars.read_csv(f"{form}.csv"),
        "json": polars.read_json(f"{form}.json"),
        "parquet": polars.read_parquet(f"{form}.parquet"),
    }
    for kind, frame in frames.items():
        assert frame.columns == list(plain[0]), (kind, frame.columns)
        assert numbers(frame.to_dicts(), column) == expected, (form, column, kind)
        query = f"select sum(\"{column}\"), count(*), count(\"{column}\") from '{form}.{kind}'"
        found = duckdb.sql(query).fetchall()[0]
        assert abs(found[0] - total) <= 1e-9 * total, (form, column, kind, found, total)
        assert found[1:] == (len(plain), sum(x is not None for x in expected)), (form, column, kind, found)
    if form == "long":
        cycles = frames["parquet"].filter(polars.col("metric") == "cycles")
        by_scheme = dict(cycles.group_by("scheme").agg(polars.col("value").mean()).iter_rows())
        assert by_scheme["strict"] > by_scheme["base"], by_scheme
print("polars", polars.__version__, "and duckdb", duckdb.__version__, "read CSV, JSON and Parquet")
PYTHON
