/* SPDX-License-Identifier: Apache-2.0
 *
 * Values of single columns, checked: what intent.c and intent-paths.c read a node's rows with.
 */
#ifndef CTL_REGISTRY_READER_H
#define CTL_REGISTRY_READER_H 1

#include <stdbool.h>

#include "lib/impair.h"
#include "lib/node-config.h"
#include "openvswitch/compiler.h"

/* The functions return false after having put a malloc'd sentence here, which names column and value.
 * After that no other is to be called. */
struct reader {
    char *error;
};

/* Returns false. */
bool reader_bad(struct reader *, const char *column, const char *value, const char *format, ...)
    OVS_PRINTF_FORMAT(4, 5);

bool reader_name(struct reader *, const char *column, const char *, char out[NAME_SIZE]);
bool reader_address(struct reader *, const char *column, const char *, struct in6_addr *out);
/* A set of addresses, in ascending order; *out is malloc'd, in any case. */
bool reader_addresses(struct reader *, const char *column, char *const texts[], size_t n,
                      struct in6_addr **out, size_t *n_out);
/* An empty column is no SID, that is, ::. */
bool reader_sid(struct reader *, const char *column, const char *, struct in6_addr *out);
bool reader_prefix(struct reader *, const char *column, const char *, struct in6_addr *out,
                   uint8_t *plen);
bool reader_integer(struct reader *, const char *column, int64_t value, int64_t min, int64_t max);
/* The number of a port that 'config' has; 'row' says which row it stands in. */
bool reader_port(struct reader *, const char *column, const char *row, int64_t number,
                 const struct node_config *config, uint16_t *out);
bool reader_mac(struct reader *, const char *column, const char *, uint8_t mac[6]);
bool
reader_impairment(struct reader *, const char *column, const char *, struct impair_params *out);

#endif /* ctl/registry/reader.h */
