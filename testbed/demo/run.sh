#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The demonstration: Figure 1 of the draft.  One file, written once with RDMA on
# a source's RC queue pair, arrives in the memory of five replicas behind three
# edges.  Everything runs on real soft-RoCE inside a virtual machine; its files
# come back out of it.
#
# Environment: DEMO_RESULTS, a folder that is made anew (default: rocecast-demo, here), DEMO_MIB, KERNEL, ACCEL.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PATH=$here/../../build/bin:$PATH # in the source tree.

results=${DEMO_RESULTS:-rocecast-demo}
mib=${DEMO_MIB:-16}

fail() { echo "demo: $*" >&2; exit 1; }
[[ ${KERNEL:-6.1} =~ ^[0-9]+\.[0-9]+$ ]] || fail "KERNEL=$KERNEL: must be of the form 6.1"
[[ ${ACCEL:-auto} =~ ^(auto|kvm|tcg)$ ]] || fail "ACCEL=$ACCEL: must be auto, kvm or tcg"
[[ $mib =~ ^([1-9]|[1-5][0-9]|6[0-4])$ ]] || fail "DEMO_MIB=$mib: must be 1..64"

if [ -e "$results" ] && ! rmdir "$results" 2>/dev/null; then
    [ -e "$results/console" ] || fail "$results: exists, and is not of a demo"
    rm -rf "$results"
fi
mkdir -p "$results"
echo "Starting a virtual machine with Debian's kernel ${KERNEL:-6.1} and its soft-RoCE ..."
"$here/../vm/run" --results "$results" --timeout 600 --env "DEMO_MIB=$mib" -- "$here/guest.sh"

# What came back is compared here, by another program than the one that wrote it.
echo
echo "sha256 of the source's file and of each replica's memory:"
sums=$(cd "$results" && sha256sum source.bin r[1-5].bin)
echo "$sums"
if [ "$(wc -l <<<"$sums")" != 6 ] || [ "$(cut -d' ' -f1 <<<"$sums" | sort -u | wc -l)" != 1 ]; then
    fail "the replicas differ from the source"
fi
castbench report -o "$results/report.html" "$results/runs.json"
echo "Equal.  The files and the runs as JSON are in $results/."
echo "Look at $results/report.html: what was run, bytes on each link and times, as a page."
