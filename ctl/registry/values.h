/* SPDX-License-Identifier: Apache-2.0
 *
 * Values that people and the registry write as text, checked strictly: names,
 * numbers and addresses.
 */
#ifndef CTL_REGISTRY_VALUES_H
#define CTL_REGISTRY_VALUES_H 1

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/auth.h"
#include "lib/node-config.h"

/* What the checks below ask for, for error messages. */
#define NAME_RULE   "must be 1 to 63 of A-Z a-z 0-9 . _ -"
#define REMOTE_RULE "must be unix:FILE, tcp:ADDRESS:PORT or ssl:ADDRESS:PORT"
#define DB_RULE     REMOTE_RULE ", several with commas"
#define IFNAME_RULE "must be 1 to 15 characters, without '/', ':' and blanks"

#define SECRET_RULE "must be 32 to 128 hexadecimal digits"

/* Names of nodes, hosts and groups. */
bool name_is_valid(const char *);
/* Names of network devices. */
bool ifname_is_valid(const char *);

/* Decimal or 0x..., nothing before or after, min..max. */
bool number_parse(const char *, uint64_t min, uint64_t max, uint64_t *);

/* The registry's address: one or several remotes. */
bool db_is_valid(const char *);
/* Is one of its remotes ssl:? */
bool db_needs_keys(const char *);
/* Is it one unix socket?  If nobody listens there, that is final; any other remote may come up. */
bool db_is_one_socket(const char *);

bool ip6_parse(const char *, struct in6_addr *);
/* "<address>/<length>" without bits beyond the length. */
bool ip6_prefix_parse(const char *, struct in6_addr *, uint8_t *plen);
#define IP6_PREFIX_TEXT_SIZE (INET6_ADDRSTRLEN + 4)
void ip6_prefix_format(const struct in6_addr *, uint8_t plen, char text[IP6_PREFIX_TEXT_SIZE]);
/* Canonical text, in one of a few static buffers that each thread has. */
const char *ip6_text(const struct in6_addr *);

/* Hexadecimal digits, AUTH_SECRET_MIN..AUTH_SECRET_MAX bytes of them. */
bool secret_parse(const char *, struct auth_key *);
/* TLVs that authenticate packets: none, AUTH_MT, AUTH_HMAC, both of these, or AUTH_DATA alone. */
WORDS_DECLARE(auth_choice, unsigned int);
/* The same from a set of their names, as the registry has it. */
unsigned int auth_tlvs_parse(char *const names[], size_t n);
/* The opposite: the names of a set; returns how many. */
size_t auth_tlvs_names(unsigned int tlvs, const char *names[2]);

/* NULL if a host may have this address, otherwise a static string that says what it must be. */
const char *host_address_check(const struct in6_addr *);

/* A prefix of destinations that a source agent may use. */
#define PROGRAM_PREFIX_RULE \
    "must be an IPv6 prefix in " SID_SPACE_TEXT ", no bits beyond its length"
bool program_prefix_parse(const char *, struct prefix *);

/* Can this be Path_Rule.path: a path's name, or "UPLINK PROGRAM" if 'or_program'?  NULL, or a static
 * string that says what it must be. */
const char *path_text_check(const char *, bool or_program);

/* "02:..:.." */
#define MAC_TEXT_SIZE 18
void mac_format(const uint8_t mac[6], char text[MAC_TEXT_SIZE]);

/* node_role_is_foreign() for the role in a row; false if the role is unknown. */
bool node_role_text_is_foreign(const char *);
/* The bridge of a node with role ovs is a network device, "br-" and the node's name. */
#define OVS_NAME_MAX  12
#define OVS_NAME_RULE "of a node with role ovs must be at most 12 characters"
bool node_name_fits_role(const char *name, const char *role);

#endif /* ctl/registry/values.h */
