/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs that connect by RDMA-CM, in virtual time: hosts with Linux's communication manager, one
 * node with its connections (lib/cm-conn.h), and a registry that decides and lags behind.
 *
 * Messages get lost, repeated, overtaken, and come once more much later; some are forged.  Programs
 * come, listen, connect, disconnect and are killed; the node and hosts are started again.  After
 * that the network is perfect and nothing happens any more: both ends must come to agree, and
 * whoever listens must be connected.
 */
#ifndef TESTS_MODEL_CM_LAB_H
#define TESTS_MODEL_CM_LAB_H 1

#include <stdbool.h>
#include <stdint.h>

/* name, what happened. */
#define CM_EVENTS                                                                 \
    CM_EVENT(accepted, "a program that connects was accepted")                    \
    CM_EVENT(rejected, "a program that connects was rejected")                    \
    CM_EVENT(answered, "a program that listens answered")                         \
    CM_EVENT(refused, "a REQ to a host was refused")                              \
    CM_EVENT(req_again, "a REQ came to the node again")                           \
    CM_EVENT(late_req, "a REQ came again whose connection had ended")             \
    CM_EVENT(rep_again, "a REP came to the node again")                           \
    CM_EVENT(dreq_again, "a DREQ came to the node again")                         \
    CM_EVENT(forged, "a forged message came to the node")                         \
    CM_EVENT(killed, "a program was killed whose connection was established")     \
    CM_EVENT(silence, "a connection ended by silence")                            \
    CM_EVENT(new_req, "a connection ended since its queue pair asked again")      \
    CM_EVENT(behind, "a node was started again, and the registry was behind")     \
    CM_EVENT(rebooted, "a host was started again with an established connection") \
    CM_EVENT(closed, "the registry closed an established connection")

enum cm_event {
#define CM_EVENT(NAME, HELP) CM_SAW_##NAME,
    CM_EVENTS
#undef CM_EVENT
        N_CM_EVENTS
};
const char *cm_event_name(enum cm_event);
const char *cm_event_help(enum cm_event);

/* All follows from the seed.  fail() is called at most once, with what is wrong and the virtual
 * time, and does not return.  What happened is added to 'n_seen'. */
void cm_lab_run(uint64_t seed, bool trace, uint64_t n_seen[N_CM_EVENTS],
                void (*fail)(const char *text, uint64_t now));

#endif /* tests/model/cm-lab.h */
