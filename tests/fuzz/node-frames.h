/* SPDX-License-Identifier: Apache-2.0
 *
 * Packets for nodes on a bench, as a fuzzer's input says.
 */
#ifndef TESTS_FUZZ_NODE_FRAMES_H
#define TESTS_FUZZ_NODE_FRAMES_H 1

#include "lib/auth.h"
#include "tests/fuzz/fuzz.h"

#define N_RECEIVERS 3
#define MAX_IP_LEN  6000

/* A packet, which is IPv6 unless mutated, in 'ip' (MAX_IP_LEN bytes, 4-aligned); returns its
 * length. */
size_t choose_packet(struct fuzz_input *, uint8_t *ip);

/* Spoils up to three bytes of a packet, cuts the end off or adds some; returns the length then. */
size_t mutate(struct fuzz_input *, uint8_t *ip, size_t len);

/* Addresses that mean something to one of the nodes, then some that do not. */
struct in6_addr choose_address(struct fuzz_input *);

/* Key 'id', and a secret that follows from both. */
struct auth_key auth_key_of(uint32_t id, uint8_t variant);

#endif /* tests/fuzz/node-frames.h */
