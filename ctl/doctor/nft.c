/* SPDX-License-Identifier: Apache-2.0
 *
 * Whether nftables drops what rocecast sends: asks nft for the rules of this
 * network namespace.
 *
 * A rule counts if it names one of the three kinds of packet and drops or
 * rejects it.  Whatever else the rule asks for is ignored; the reader must see
 * whether it concerns other packets only.  A base chain whose policy is drop is
 * worth a warning if none of its rules accepts that kind.
 */
#include <config.h>

#include "ctl/doctor/checks.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "ctl/registry/json.h"
#include "openvswitch/json.h"
#include "util.h"

static const struct kind {
    const char *title;
    int protocol;
    const char *name; /* as nft has it. */
    int port;         /* 0: it has no ports. */
    const char *exthdr;
} kinds[] = {
    {"UDP 4791 (RoCEv2)", 17, "udp", 4791, NULL},
    {"protocol 41 (IPv6 in IPv6)", 41, "ipv6", 0, NULL},
    {"protocol 43 (SRH)", 43, "ipv6-route", 0, "rt"},
};

/* Whether a match's value, set or range includes this number or name. */
static bool
includes(const struct json *value, int number, const char *name)
{
    if (!value) {
        return false;
    }
    if (value->type == JSON_INTEGER) {
        return json_integer(value) == number;
    }
    if (value->type == JSON_STRING) {
        return name && !strcmp(json_string(value), name);
    }
    const struct json_array *range = ctl_get_array(value, "range");
    if (range->n == 2 && range->elems[0]->type == JSON_INTEGER
        && range->elems[1]->type == JSON_INTEGER) {
        return json_integer(range->elems[0]) <= number && number <= json_integer(range->elems[1]);
    }
    const struct json_array *set = ctl_get_array(value, "set");
    for (size_t i = 0; i < set->n; i++) {
        if (includes(set->elems[i], number, name)) {
            return true;
        }
    }
    return false;
}

enum verdict {
    OTHER, /* it is about something else. */
    YES,   /* it names such packets. */
    NO,    /* it names other packets. */
};

static enum verdict
verdict(bool matches, bool inverted)
{
    return matches != inverted ? YES : NO;
}

/* What one match says of a kind of packet. */
static enum verdict
judge_match(const struct json *match, const struct kind *kind)
{
    const struct json *left = ctl_get(match, "left"), *right = ctl_get(match, "right");
    const struct json *payload = ctl_get(left, "payload");
    const char *protocol = ctl_get_string(payload, "protocol");
    const char *field = ctl_get_string(payload, "field");
    bool inverted = !strcmp(ctl_get_string(match, "op"), "!=");

    if (!strcmp(ctl_get_string(ctl_get(left, "meta"), "key"), "l4proto")
        || !strcmp(field, "nexthdr")) {
        return verdict(includes(right, kind->protocol, kind->name), inverted);
    }
    if (kind->exthdr && !strcmp(ctl_get_string(ctl_get(left, "exthdr"), "name"), kind->exthdr)) {
        return YES;
    }
    if (!strcmp(field, "dport") || !strcmp(field, "sport")) {
        bool same = !strcmp(protocol, kind->name) || (!strcmp(protocol, "th") && kind->port);
        if (!same || !kind->port) {
            return NO;
        }
        /* RoCEv2 packets have any source port. */
        return !strcmp(field, "dport") ? verdict(includes(right, kind->port, NULL), inverted)
                                       : OTHER;
    }
    return !strcmp(protocol, "tcp") || !strcmp(protocol, "icmp") || !strcmp(protocol, "icmpv6")
               ? NO
               : OTHER;
}

/* Whether a rule names this kind of packet. */
static bool
concerns(const struct json *rule, const struct kind *kind)
{
    const struct json_array *expr = ctl_get_array(rule, "expr");
    bool named = false;
    for (size_t i = 0; i < expr->n; i++) {
        const struct json *match = ctl_get(expr->elems[i], "match");
        enum verdict v = match ? judge_match(match, kind) : OTHER;
        if (v == NO) {
            return false;
        }
        named |= v == YES;
    }
    return named;
}

static bool
has_statement(const struct json *rule, const char *statement)
{
    const struct json_array *expr = ctl_get_array(rule, "expr");
    for (size_t i = 0; i < expr->n; i++) {
        if (ctl_get(expr->elems[i], statement)) {
            return true;
        }
    }
    return false;
}

/* Whether the object, a chain or a rule, is about IPv6 packets. */
static bool
is_ip6(const struct json *object)
{
    const char *family = ctl_get_string(object, "family");
    return strcmp(family, "ip") != 0 && strcmp(family, "arp") != 0;
}

static bool
is_in(const struct json *rule, const struct json *chain)
{
    return !strcmp(ctl_get_string(rule, "family"), ctl_get_string(chain, "family"))
           && !strcmp(ctl_get_string(rule, "table"), ctl_get_string(chain, "table"))
           && !strcmp(ctl_get_string(rule, "chain"), ctl_get_string(chain, "name"));
}

/* A chain as nft's commands name it; 'key' is what the object calls it.  malloc'd. */
static char *
chain_of(const struct json *object, const char *key)
{
    return xasprintf("%s %s %s", ctl_get_string(object, "family"), ctl_get_string(object, "table"),
                     ctl_get_string(object, key));
}

static void
check_rule(struct doctor *d, const struct json *rule)
{
    if (!is_ip6(rule) || !(has_statement(rule, "drop") || has_statement(rule, "reject"))) {
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (concerns(rule, &kinds[i])) {
            long long number = (long long) ctl_get_int(rule, "handle");
            char *chain = chain_of(rule, "chain");
            doctor_add(d, DOCTOR_PROBLEM,
                       xasprintf("nftables drops %s: rule %lld of chain %s", kinds[i].title, number,
                                 chain),
                       xasprintf("nft delete rule %s handle %lld, or accept it before that rule",
                                 chain, number));
            free(chain);
        }
    }
}

static void
check_policy(struct doctor *d, const struct json_array *list, const struct json *chain)
{
    if (!is_ip6(chain) || strcmp(ctl_get_string(chain, "policy"), "drop") != 0) {
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        bool accepted = false;
        for (size_t j = 0; j < list->n; j++) {
            const struct json *rule = ctl_get(list->elems[j], "rule");
            accepted |= rule && is_in(rule, chain) && has_statement(rule, "accept")
                        && concerns(rule, &kinds[i]);
        }
        if (!accepted) {
            char *name = chain_of(chain, "name");
            doctor_add(d, DOCTOR_WARNING,
                       xasprintf("the policy of nftables chain %s is drop, and no rule there "
                                 "accepts %s",
                                 name, kinds[i].title),
                       xasprintf("nft insert rule %s %s%s accept", name,
                                 kinds[i].port ? "" : "meta l4proto ",
                                 kinds[i].port ? "udp dport 4791" : kinds[i].name));
            free(name);
        }
    }
}

static void
check_ruleset(struct doctor *d, const struct json *ruleset)
{
    const struct json *list = ctl_get(ruleset, "nftables");
    size_t before = d->n;
    if (!list || list->type != JSON_ARRAY) {
        doctor_add(d, DOCTOR_WARNING, xstrdup("cannot make sense of what nft says"),
                   xstrdup("look at 'nft list ruleset'"));
        return;
    }
    for (size_t i = 0; i < list->array.n; i++) {
        const struct json *rule = ctl_get(list->array.elems[i], "rule");
        const struct json *chain = ctl_get(list->array.elems[i], "chain");
        if (rule) {
            check_rule(d, rule);
        } else if (chain) {
            check_policy(d, &list->array, chain);
        }
    }
    if (d->n == before) {
        doctor_add(d, DOCTOR_OK,
                   xstrdup("no rule against UDP 4791 or protocols 41 and 43 in this network "
                           "namespace"),
                   NULL);
    }
}

void
doctor_nftables(struct doctor *d)
{
    int status;
    char *text = doctor_output("nft -j -n list ruleset", &status);
    if (status >= 0 && WIFEXITED(status) && WEXITSTATUS(status) == 127) {
        doctor_add(d, DOCTOR_WARNING, xstrdup("nft is not installed: rules were not looked at"),
                   xstrdup("apt-get install nftables"));
    } else if (status) {
        text[strcspn(text, "\n")] = '\0';
        doctor_add(d, DOCTOR_WARNING, xasprintf("rules cannot be seen: nft says: %s", text),
                   xstrdup("run this as root"));
    } else {
        struct json *ruleset = json_from_string(text);
        check_ruleset(d, ruleset);
        json_destroy(ruleset);
    }
    free(text);
}
