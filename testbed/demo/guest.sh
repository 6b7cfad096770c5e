#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The part of the demonstration that needs soft-RoCE: runs as root, in the
# virtual machine (run.sh) or on a machine that has rdma_rxe.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PATH=$here/../../build/bin:$PATH # in the source tree.
: "${RESULTS:?is to name a folder for results}"

size=$((${DEMO_MIB:-16} * 1024 * 1024))
block=65536
file=
case ${ACCEL:-} in # testbed/vm/run says
tcg) cpu='emulated: speeds are far from those of a real one' ;;
kvm) cpu='virtual (KVM)' ;;
*) cpu='real' ;;
esac

# shellcheck disable=SC2317 # called by the trap
finish() {
    local status=$?
    [ $status = 0 ] || tail -n 20 /run/rocecast/lab/fig1/*.log >&2
    castlab down fig1
    rm -f "$file"
}
castlab up "$here/../topologies/fig1.yaml"
trap finish EXIT
eval "$(castlab env fig1)"

# Queue pairs wait as long for an ACK with both schemes: 4.096 us * 2^20.
castctl group add demo --mtu 4096 --timeout 20
file=$(mktemp)
head -c $size /dev/urandom >"$file"

echo
echo "$size bytes in RDMA WRITEs of $block from h0 to r1 ... r5: with one RC queue pair per receiver, by"
echo "plain routing (unicast); then with a single one, and the network makes the copies (mcast):"
castbench write --scheme unicast,mcast --group demo --source h0 --receivers r1,r2,r3,r4,r5 \
    -m 4096 -u 20 -s "$block" -n "$((size / block))" -t 8 --file "$file" --out "$RESULTS" \
    --count-bytes fig1-sa:n6 --lab fig1 --json "$RESULTS/runs.json" \
    --label "topology=fig1: Figure 1 of the draft" --label "CPU=$cpu"
echo
echo "The tree, and up to which packet sequence number each part of it has confirmed:"
castctl tree show demo
echo
"$here/report" "$RESULTS/runs.json"
