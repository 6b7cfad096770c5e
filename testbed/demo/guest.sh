#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The part of the demonstration that needs soft-RoCE: runs as root, in the
# virtual machine (testbed/demo/run.sh) or on a machine that has rdma_rxe.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
PATH=$PWD/build/bin:$PATH
: "${RESULTS:?is to name a folder for results}"

size=$((${DEMO_MIB:-16} * 1024 * 1024))
block=65536
file=
# The fabric's links, each from the end nearer to the source.
links=(sa:n6 n6:n4 n6:n5 n4:n1 n4:n2 n5:n2 n5:n3)

# shellcheck disable=SC2317 # called by the trap
finish() {
    local status=$?
    [ $status = 0 ] || tail -n 20 /run/rocecast/lab/fig1/*.log >&2
    castlab down fig1
    rm -f "$file"
}
castlab up testbed/topologies/fig1.yaml
trap finish EXIT
eval "$(castlab env fig1)"

castctl group add demo --mtu 4096
file=$(mktemp)
head -c $size /dev/urandom >"$file"
run=(castbench write --source h0 --receivers "r1,r2,r3,r4,r5" -s "$block" -n "$((size / block))" -t 8
    --file "$file")
for link in "${links[@]}"; do # a forwarder's device has the name of its neighbour
    run+=(--count-bytes "fig1-${link%:*}:${link#*:}" --count-bytes "fig1-${link#*:}:${link%:*}")
done

echo
echo "One RC queue pair on h0, $size bytes in RDMA WRITEs of $block, to r1 ... r5 at once:"
"${run[@]}" --group demo --out "$RESULTS" --json "$RESULTS/multicast.json"
echo
echo "The tree, and up to which packet sequence number each part of it has confirmed:"
castctl tree show demo
echo
echo "The same bytes with one RC queue pair per receiver, by plain routing through the same fabric:"
"${run[@]}" --scheme unicast -m 4096 -u 20 --json "$RESULTS/unicast.json"
echo
testbed/demo/report "$RESULTS"
