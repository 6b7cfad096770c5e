#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The part of the demonstration that needs soft-RoCE: runs as root, in the
# virtual machine (testbed/demo.sh) or on a machine that has rdma_rxe.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
PATH=$PWD/build/bin:$PATH
: "${RESULTS:?is to name a folder for results}"

size=$((${DEMO_MIB:-16} * 1024 * 1024))
block=65536
uplink=star-sa:n1 # what leaves the source's side: kernel counters of this device

# shellcheck disable=SC2317 # called by the trap
finish() {
    local status=$?
    [ $status = 0 ] || tail -n 20 /run/rocecast/lab/star/*.log >&2
    castlab down star
}
castlab up testbed/topologies/star.yaml
trap finish EXIT
eval "$(castlab env star)"

castctl group add demo --mtu 4096
head -c $size /dev/urandom >"$RESULTS/source.bin"
run=(castbench write --source h0 --receivers "r1,r2" -s "$block" -n "$((size / block))"
    --file "$RESULTS/source.bin" --count-bytes "$uplink")

echo
echo "One RC queue pair on h0, $size bytes in RDMA WRITEs of $block, to r1 and r2 at once:"
"${run[@]}" --group demo --out "$RESULTS" --json "$RESULTS/multicast.json"
echo
castctl tree show demo
echo
echo "The same bytes with one RC queue pair per receiver through the same fabric:"
"${run[@]}" --scheme unicast -m 4096 --json "$RESULTS/unicast.json"

python3 - "$RESULTS" "$size" <<'PY'
import json, sys
folder, size = sys.argv[1], int(sys.argv[2])
sent = {}
for name in 'multicast', 'unicast':
    with open('%s/%s.json' % (folder, name)) as f:
        sent[name] = json.load(f)['uplink']['tx_bytes']
print('\nBytes that the kernel counted on the source\'s uplink for %d bytes to 2 replicas:' % size)
for name, n in sent.items():
    print('  %-10s %12d  %5.2f x' % (name, n, n / size))
print('  saved      %12d  (%.0f %%)' % (sent['unicast'] - sent['multicast'],
                                        100 * (1 - sent['multicast'] / sent['unicast'])))
PY
