/* SPDX-License-Identifier: Apache-2.0
 *
 * An ideal aggregator in place of the one switch of a star: what the reverse
 * path could be if it knew everything.
 *
 * It knows each receiver's expected PSN, whether anybody said so or not, and no
 * response on its way to it gets lost.  Whenever one of them answers it looks at all:
 * - it acknowledges the true minimum as soon as that moves;
 * - if the one that answered is further than the minimum, or misses something, then the
 *   packet at the minimum is lost, and NAK(m) goes up at once; again if that was sent
 *   again and got lost once more, which a real receiver would not say.
 */
#include "lib/response.h"
#include "lib/roce.h"
#include "tests/model/lab.h"

/* Of a link to a receiver: when twice this has passed, answers are to what was sent again. */
#define MAX_DELAY 10

/* The end at the source agent of its link to the switch. */
static struct fabric_end
agent_end(const struct lab *lab)
{
    for (unsigned i = 0;; i++) {
        const struct fabric_end *ends = lab->fabric.links[i].ends;
        if (ends[0].station == lab_agent(lab) && ends[1].station < lab->n_nodes) {
            return ends[0];
        }
    }
}

static void
say(struct lab *lab, psn_t psn, uint8_t syndrome)
{
    struct packet *p = response_build(lab->pool, &lab_proxy, &lab_source_address, 0xc000,
                                      lab_source_qpn(lab->epoch), psn, syndrome, 0);
    struct fabric_end agent = agent_end(lab);
    struct fabric_end from = fabric_peer(&lab->fabric, agent);
    uint8_t frame[PACKET_ROOM] = {0};
    struct eth_hdr *eth = (struct eth_hdr *) frame;

    node_port_mac(lab->nodes[agent.station].base.id, agent.port, eth->dst);
    node_port_mac(lab->nodes[from.station].base.id, from.port, eth->src);
    eth->type = be16_put(ETH_TYPE_IP6);
    size_t len = p ? packet_flatten(p, frame + sizeof *eth, sizeof frame - sizeof *eth) : 0;
    LAB_REQUIRE(lab, len, "the pool is empty");
    packet_put(p);
    fabric_send(&lab->fabric, from, frame, len + sizeof *eth, false);
}

void
lab_oracle_down(struct lab *lab, psn_t q)
{
    struct lab_oracle *o = &lab->of_switch;

    if (o->told && psn_eq(q, o->f)) {
        o->served_at = lab->fabric.now;
    }
}

void
lab_oracle_look(struct lab *lab, uint8_t syndrome, psn_t psn)
{
    struct lab_oracle *o = &lab->of_switch;
    psn_t m = lab_confirmed_by(lab, lab->epoch, 0);
    bool is_nak = syndrome == AETH_NAK_PSN_SEQ;

    for (unsigned i = 1; i < lab->n; i++) {
        psn_t una = lab_confirmed_by(lab, lab->epoch, i);
        m = psn_cmp(una, m) < 0 ? una : m;
    }
    bool lost = psn_cmp(psn, m) >= 0 && (is_nak || syndrome == AETH_ACK_UNLIMITED);
    bool moved = psn_cmp(m, o->f) > 0;
    if (moved) {
        *o = (struct lab_oracle){.f = m, .dup_not_before = o->dup_not_before};
    }
    bool again = o->served_at && lab->fabric.now > o->served_at + 2 * MAX_DELAY;
    if (moved) {
        say(lab, psn_add(m, -1), AETH_ACK_UNLIMITED);
    }
    if (lost && (!o->told || again)) {
        o->told = true;
        o->served_at = 0;
        say(lab, m, AETH_NAK_PSN_SEQ);
    } else if (!lost && !moved && lab->fabric.now >= o->dup_not_before) {
        o->dup_not_before = lab->fabric.now + REVERSE_DUP_ACK_USEC;
        say(lab, psn_add(m, -1), AETH_ACK_UNLIMITED);
    }
}
