/* SPDX-License-Identifier: Apache-2.0
 *
 * What lib/auth.c and lib/data-auth.c do, a second time: digests of SRHs and tags of packets, made and
 * checked.
 */
#ifndef TESTS_FUZZ_SRH_AUTH_H
#define TESTS_FUZZ_SRH_AUTH_H 1

#include "lib/auth.h"
#include "lib/parse.h"

/* Puts the key's id and the digests for this epoch into the HMAC, MT-AUTH and DATA-AUTH TLVs of a
 * frame, those that it has. */
void srh_auth_sign(uint8_t *frame, const struct parsed *, const struct auth_key *,
                   const struct auth_epoch *);

/* What a DATA-AUTH TLV says; false: the frame has none. */
struct srh_auth_nonce {
    uint32_t key, instance;
    uint64_t seq;
};
bool srh_auth_nonce(const uint8_t *frame, const struct parsed *, struct srh_auth_nonce *);

/* Does the frame have what 'config' wants in this epoch, by one of its keys? */
bool srh_auth_ok(const uint8_t *frame, const struct parsed *, const struct auth_config *config,
                 const struct auth_epoch *);

#endif /* tests/fuzz/srh-auth.h */
