#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The demonstration of a replicated disk (examples/blockdev): a file system on a
# disk that is written once and kept by three replicas, one of which is killed
# and comes back; beside it md RAID1 over three disks, the usual way.  Everything
# runs on real soft-RoCE inside a virtual machine.
#
# Environment: DEMO_RESULTS, a folder that is made anew, KERNEL, ACCEL; DEMO_MORE=1 for more mishaps, which
# tests/blockdev/run has.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

results=${DEMO_RESULTS:-build/demo-block}

fail() { echo "demo-block: $*" >&2; exit 1; }
[[ ${KERNEL:-6.1} =~ ^[0-9]+\.[0-9]+$ ]] || fail "KERNEL=$KERNEL: must be of the form 6.1"
[[ ${ACCEL:-auto} =~ ^(auto|kvm|tcg)$ ]] || fail "ACCEL=$ACCEL: must be auto, kvm or tcg"
[ -e build/nbdkit-rocecast-plugin.so ] || fail "build/nbdkit-rocecast-plugin.so is missing: nbdkit-plugin-dev, then make"

rm -rf "$results"
mkdir -p "$results"
echo "Starting a virtual machine with Debian's kernel ${KERNEL:-6.1} and its soft-RoCE ..."
testbed/vm/run --results "$results" --timeout "${DEMO_TIMEOUT:-900}" \
    --env "DEMO_MORE=${DEMO_MORE:-}" -- testbed/demo/block-guest

# What came back is compared here, by another program than those that wrote it.
echo
echo "sha256 of the replicas' images:"
sums=$(cd "$results" && sha256sum r[1-3].img)
echo "$sums"
if [ "$(wc -l <<<"$sums")" != 3 ] || [ "$(cut -d' ' -f1 <<<"$sums" | sort -u | wc -l)" != 1 ]; then
    fail "the replicas differ"
fi
echo "Equal.  Images, logs and figures (block.json) are in $results/."
