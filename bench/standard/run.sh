#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The standard benchmark: multicast against all that one would do instead, on
# real soft-RoCE inside a virtual machine, in three topologies
# (docs/benchmarks.md).  What it has measured and shown is in build/bench/.
#
# usage: [KERNEL=6.12] [ACCEL=kvm|tcg] bench/standard/run.sh [TOPOLOGY...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

results=${BENCH_RESULTS:-build/bench}
kernel=${KERNEL:-6.12}

fail() { echo "bench: $*" >&2; exit 1; }
[[ $kernel =~ ^[0-9]+\.[0-9]+$ ]] || fail "KERNEL=$kernel: must be of the form 6.12"
[[ ${ACCEL:-auto} =~ ^(auto|kvm|tcg)$ ]] || fail "ACCEL=$ACCEL: must be auto, kvm or tcg"
for topology in "$@"; do
    [ -f "testbed/topologies/$topology.yaml" ] || fail "there is no topology '$topology'"
done

start=$SECONDS
rm -rf "$results"
mkdir -p "$results"
echo "Starting a virtual machine with Debian's kernel $kernel and its soft-RoCE ..."
testbed/vm/run --kernel "$kernel" --results "$results" --timeout 3600 -- bench/standard/guest.py "$@"

shopt -s nullglob # Figure 1 has no part 'latency'.
build/bin/castbench report -o "$results/report.html" "$results"/*-throughput.json "$results"/*-latency.json
status=0
bench/standard/check "$results" "$@" | tee "$results/verdicts.txt" || status=$?
echo "Took $((SECONDS - start)) s.  Runs as JSON, report.html and verdicts.txt are in $results/."
exit $status
