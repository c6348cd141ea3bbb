#!/usr/bin/env bash
# A sweep as an array job of a real Slurm on one node: a task is killed in the middle, the sweep is handed in again, and
# the table is that of a sweep that nobody disturbed. Needs slurm-wlm and munge, root, and the path of a durawarp binary.
# Exit codes: 0 it holds; 77 there is no Slurm here and it cannot be installed; else it does not hold.
set -euo pipefail
program=$(realpath "${1:?the path of durawarp}")

skip() { echo "slurm: SKIPPED: $*"; exit 77; }
fail() { echo "slurm: FAILED: $*" >&2; tail -n 5 "$S"/log/*.log "$S"/results/slurm-*.out 2>/dev/null >&2 || true; exit 1; }

[ "$(id -u)" = 0 ] || skip "needs root"
if ! command -v slurmctld slurmd munged sbatch >/dev/null; then
    command -v apt-get >/dev/null || skip "no Slurm, and no apt-get to install it"
    DEBIAN_FRONTEND=noninteractive timeout 300 apt-get install -y --no-install-recommends slurm-wlm munge \
        >/dev/null 2>&1 </dev/null || skip "slurm-wlm cannot be installed"
fi

S=$(mktemp -d)
chmod 755 "$S"
mkdir -p "$S"/{state,spool,log,results}
rmdir "$S/results"
daemons=()
clean() {
    for pid in "${daemons[@]}"; do kill "$pid" 2>/dev/null || true; done
    wait 2>/dev/null || true
    rm -rf "$S"
}
trap clean EXIT

host=$(hostname -s)
cpus=$(nproc)
port=$((20000 + RANDOM % 20000))
export SLURM_CONF=$S/slurm.conf
cat > "$SLURM_CONF" <<CONF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$S/munge.sock
CredType=cred/munge
SlurmctldPort=$port
SlurmdPort=$((port + 1))
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
StateSaveLocation=$S/state
SlurmdSpoolDir=$S/spool
SlurmctldPidFile=$S/slurmctld.pid
SlurmdPidFile=$S/slurmd.pid
SlurmctldLogFile=$S/log/slurmctld.log
SlurmdLogFile=$S/log/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
NodeName=$host NodeAddr=127.0.0.1 CPUs=$cpus State=UNKNOWN
PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
CONF
dd if=/dev/urandom of="$S/munge.key" bs=1024 count=1 2>/dev/null
chmod 400 "$S/munge.key"
munged -F --key-file="$S/munge.key" --socket="$S/munge.sock" --pid-file="$S/munged.pid" --log-file="$S/log/munged.log" \
    --seed-file="$S/seed" --force >/dev/null 2>&1 & daemons+=($!)
sleep 1
slurmctld -D >/dev/null 2>&1 & daemons+=($!)
sleep 2
slurmd -D >/dev/null 2>&1 & daemons+=($!)
for _ in $(seq 60); do
    sinfo -h -o %t 2>/dev/null | grep -q '^idle$' && break
    sleep 1
done
sinfo -h -o %t 2>/dev/null | grep -q '^idle$' || fail "the node does not come up"

cat > "$S/sweep.toml" <<'SWEEP'
schema = 1
name = "slurm-test"
[base]
workload = "vecadd"
profile = "ci"
set = { "sm.count" = 2 }
[[axis]]
key = "scheme"
values = ["base", "strict", "nt-store", "store+clwb"]
[[axis]]
key = "params.N"
range = { from = 1024, to = 4096, step = 1024 }
[[axis]]
key = "seed"
range = { from = 0, to = 14, step = 1 }
SWEEP
cd "$S"

# Empty once no task is there any more.
wait_for_jobs() {
    for _ in $(seq 300); do
        [ -z "$(squeue -h)" ] && return
        sleep 1
    done
    fail "the jobs do not end"
}
# Whole records of results: a torn last line is none.
results() {
    for file in "$S"/results/*.jsonl; do
        [ -e "$file" ] || continue
        if [ -n "$(tail -c 1 "$file" | tr -d '\n')" ]; then sed '$d' "$file"; else cat "$file"; fi
    done 2>/dev/null | grep -c '"outcome"' || true
}

"$program" sweep run sweep.toml --results results --slurm 3
killed=
for _ in $(seq 1200); do
    if [ "$(results)" -ge 20 ]; then
        # A task's durawarp dies as if the node had failed. It is a child of slurmd's step, so that no other is met.
        killed=$(pgrep -f -- "--results $S/results --shard" | head -n 1 || true)
        [ -n "$killed" ] && kill -9 "$killed" && break
    fi
    sleep 0.05
done
[ -n "$killed" ] || fail "no task was seen"
# The others too, with everything that waits: the whole job is lost.
scancel --name=slurm-test --signal=KILL --full 2>/dev/null || true
scancel --name=slurm-test
wait_for_jobs
before=$(results)
[ "$before" -lt 240 ] || fail "all was done before the task was killed"
"$program" sweep status sweep.toml --results results | head -n 1

"$program" sweep run sweep.toml --results results --slurm 3
wait_for_jobs
after=$(results)
[ "$after" = 240 ] || fail "$after results for 240 points: something was lost or run twice"
"$program" sweep table sweep.toml --results results --csv disturbed.csv

"$program" sweep run sweep.toml --results whole --quiet
"$program" sweep table sweep.toml --results whole --csv whole.csv
cmp disturbed.csv whole.csv || fail "another table than that of an undisturbed sweep"
echo "slurm: $before of 240 points were done when a task was killed; handed in again it ends with the same table"
