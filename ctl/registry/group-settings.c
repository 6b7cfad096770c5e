/* SPDX-License-Identifier: Apache-2.0
 *
 * The settings that operators give a group.
 */
#include <config.h>

#include "ctl/registry/group-settings.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "ctl/registry/rocecast-idl.h"
#include "ctl/registry/values.h"
#include "lib/cnp-window.h"
#include "lib/ioam.h"
#include "smap.h"
#include "util.h"

#define DEFAULT_LIVENESS 10000 /* ms. */
#define MAX_LIVENESS     3600000
#define MAX_TIMEOUT      31
#define MAX_MIN_RATE     100000000
#define MIN_CNP_WINDOW   10 /* us. */
#define MAX_CNP_WINDOW   1000000
#define CONNECT_PORT     "7174" /* also in docs/joining.md. */

static const char *const off_on[] = {"off", "on"};
static const struct words off_on_words = WORDS_INIT(off_on);

static int
check_mtu(struct group_settings *s OVS_UNUSED, uint64_t mtu, char **whyp)
{
    if (mtu & (mtu - 1)) {
        *whyp = xstrdup("must be 256, 512, 1024, 2048 or 4096");
        return EINVAL;
    }
    return 0;
}

/* Four times the QPs' time-out in milliseconds: a requester asks again not before that has passed,
 * and it takes some of its questions to call a receiver silent. */
static uint64_t
liveness_min(uint8_t timeout)
{
    return ((4096 * 4ull << timeout) + 999999) / 1000000;
}

/* Also sets the liveness time to its default, which depends on the time-out. */
static int
check_timeout(struct group_settings *s, uint64_t timeout, char **whyp OVS_UNUSED)
{
    s->policy.liveness_msec = (uint32_t) MAX(DEFAULT_LIVENESS, liveness_min((uint8_t) timeout));
    return 0;
}

static uint64_t
liveness_max(const struct group_settings *s)
{
    return MAX(MAX_LIVENESS, liveness_min(s->policy.timeout));
}

static int
check_liveness(struct group_settings *s, uint64_t msec, char **whyp)
{
    uint64_t min = liveness_min(s->policy.timeout);

    if (msec && msec < min) {
        *whyp = xasprintf("must be 0 (never) or at least %" PRIu64
                          " ms, 4 times the QPs' time-out (4.096 us * 2^%d)",
                          min, s->policy.timeout);
        return ERANGE;
    }
    return 0;
}

#define FIELD(MEMBER) \
    offsetof(struct group_settings, MEMBER), sizeof(((struct group_settings *) 0)->MEMBER)
#define WORD(MEMBER, WORDS)           FIELD(MEMBER), WORDS, NULL, NULL, 0, 0, NULL, NULL
#define FLAG(MEMBER)                  FIELD(MEMBER), &off_on_words, "on", NULL, 0, 0, NULL, NULL
#define NUMBER(MEMBER, ARG, MIN, MAX) FIELD(MEMBER), NULL, NULL, ARG, MIN, MAX

const struct group_setting group_settings_table[] = {
    {"mode", "mode", "replicate", SETTING_NOT_STARTED, "how packets get to the edges",
     WORD(mode, &tree_mode_words)},
    {"receivers", "receivers", "tlv", SETTING_NOT_STARTED,
     "how an edge knows for whom a packet is: the packet says so, or castd has",
     WORD(provisioned, &receivers_words)},
    {"mtu", "mtu", "1024", SETTING_FIXED, "path MTU: 256, 512, 1024, 2048 or 4096",
     NUMBER(mtu, "BYTES", 256, 4096), check_mtu, NULL},
    {"psn", NULL, "random in each epoch", SETTING_FIXED, "start PSN of all epochs",
     NUMBER(psn, "PSN", 0, PSN_MASK), NULL, NULL},
    {"timeout", "qp_timeout", "20", SETTING_FIXED,
     "recommended time-out of the QPs, 1..31: 4.096 us * 2^T",
     NUMBER(policy.timeout, "T", 1, MAX_TIMEOUT), check_timeout, NULL},
    {"policy", "policy", "fail-group", SETTING_ANY_TIME,
     "what becomes of a group that loses members: it fails, or goes on without them",
     WORD(policy.prune, &loss_policy_words)},
    {"liveness", "liveness_ms", "10000, or 4 time-outs if that is more", SETTING_ANY_TIME,
     "ms of silence after which a member is lost; 0: never",
     NUMBER(policy.liveness_msec, "MS", 0, MAX_LIVENESS), check_liveness, liveness_max},
    {"min-rate", "min_rate", "10", SETTING_ANY_TIME,
     "packets a second: who owes answers for the liveness time and confirms fewer is slow; 0: nobody",
     NUMBER(policy.min_rate, "PACKETS", 0, MAX_MIN_RATE), NULL, NULL},
    {"slow", "slow", "report", SETTING_ANY_TIME,
     "what becomes of a slow member: it is reported, or lost",
     WORD(policy.lose_slow, &slow_policy_words)},
    {"nak", "nak", "hold", SETTING_ANY_TIME,
     "what becomes of a NAK while other members have confirmed less",
     WORD(policy.nak, &nak_policy_words)},
    {"filter", "filter", "on", SETTING_ANY_TIME,
     "what is sent again spares members that have confirmed it",
     WORD(policy.filter, &off_on_words)},
    {"cnp", "cnp", "auto", SETTING_ANY_TIME,
     "whose CNPs count: the edges' until a receiver sends its own, edges' and receivers', receivers', none",
     WORD(policy.cnp, &cnp_source_words)},
    {"cnp-window", "cnp_window_us", "1000", SETTING_ANY_TIME,
     "us in which each node sends at most one CNP upwards",
     NUMBER(policy.cnp_window_usec, "US", MIN_CNP_WINDOW, MAX_CNP_WINDOW), NULL, NULL},
    {"trace", "trace_slots", "0", SETTING_NOT_STARTED,
     "room for so many nodes in the IOAM trace of its packets; 0: they have none",
     NUMBER(policy.trace_slots, "SLOTS", 0, IOAM_MAX_SLOTS), NULL, NULL},
    {"connect", NULL, "off", SETTING_ANY_TIME,
     "RDMA-CM programs may connect to its Proxy Address: become its source, or receivers",
     FLAG(connect)},
    {"port", NULL, CONNECT_PORT, SETTING_ANY_TIME, "service port for that",
     NUMBER(connect_port, "PORT", 1, UINT16_MAX), NULL, NULL},
    {.option = NULL},
};

size_t
group_settings_count(void)
{
    return ARRAY_SIZE(group_settings_table) - 1;
}

bool
group_setting_is_switch(const struct group_setting *setting)
{
    return setting->words == &off_on_words;
}

char *
group_setting_argument(const struct group_setting *setting)
{
    return setting->words ? words_join(setting->words, WORDS_ALL, "|", "|") : xstrdup(setting->arg);
}

/* Fields are unsigned integers, enumerations and booleans of a size of their own. */
static uint64_t
get_field(const struct group_setting *setting, const struct group_settings *s)
{
    const void *field = (const char *) s + setting->ofs;

    switch (setting->size) {
    case 1: return *(const uint8_t *) field;
    case 4: return *(const uint32_t *) field;
    default: return *(const uint64_t *) field;
    }
}

static void
set_field(const struct group_setting *setting, struct group_settings *s, uint64_t value)
{
    void *field = (char *) s + setting->ofs;

    switch (setting->size) {
    case 1: *(uint8_t *) field = (uint8_t) value; break;
    case 4: *(uint32_t *) field = (uint32_t) value; break;
    default: *(uint64_t *) field = value; break;
    }
}

int
group_setting_parse(const struct group_setting *setting, const char *text, struct group_settings *s,
                    char **whyp)
{
    uint64_t max = setting->max_for ? setting->max_for(s) : setting->max;
    unsigned int word = 0;
    uint64_t value;

    *whyp = NULL;
    if (setting->words) {
        if (!words_parse(setting->words, text, &word)) {
            char *words = words_join(setting->words, WORDS_ALL, ", ", " or ");

            *whyp = xasprintf("must be %s", words);
            free(words);
            return EINVAL;
        }
        value = word;
    } else if (!number_parse(text, setting->min, max, &value)) {
        *whyp = xasprintf("must be %" PRIu64 "..%" PRIu64, setting->min, max);
        return EINVAL;
    }
    int error = setting->check ? setting->check(s, value, whyp) : 0;
    if (!error) {
        set_field(setting, s, value);
    }
    return error;
}

char *
group_setting_text(const struct group_setting *setting, const struct group_settings *s)
{
    uint64_t value = get_field(setting, s);

    if (setting->words) {
        return xstrdup(words_name(setting->words, (unsigned int) value));
    }
    return value == (uint64_t) PSN_RANDOM ? NULL : xasprintf("%" PRIu64, value);
}

bool
group_setting_equal(const struct group_setting *setting, const struct group_settings *a,
                    const struct group_settings *b)
{
    return get_field(setting, a) == get_field(setting, b);
}

/* A port that is given needs a group that takes connections. */
static int
check_port_is_used(const struct group_setting *setting, const struct group_settings *s, char **whyp)
{
    if (!strcmp(setting->option, "port") && !s->connect) {
        *whyp = xstrdup("the group takes no connections (connect)");
        return ERANGE;
    }
    return 0;
}

/* Defaults that are in words are no values, and stay as they are: that of the PSN is here, that of
 * the liveness time comes with the time-out. */
int
group_settings_take(struct group_settings *settings, const struct smap *given,
                    const struct group_setting **wrongp, char **whyp)
{
    for (const struct group_setting *s = group_settings_table; s->option; s++) {
        const char *text = smap_get(given, s->option);
        int error = text ? group_setting_parse(s, text, settings, whyp) : 0;

        error = text && !error ? check_port_is_used(s, settings, whyp) : error;
        if (error) {
            *wrongp = s;
            return error;
        }
    }
    return 0;
}

const struct group_setting *
group_settings_find_other(const struct rrec_group *row, const struct group_settings *wanted,
                          const struct smap *given)
{
    struct group_settings have;

    group_settings_read(row, &have);
    for (const struct group_setting *s = group_settings_table; s->option; s++) {
        if ((s->change == SETTING_FIXED || smap_get(given, s->option))
            && !group_setting_equal(s, &have, wanted)) {
            return s;
        }
    }
    return NULL;
}

struct group_settings
group_settings_default(void)
{
    static _Thread_local struct group_settings s; /* castd asks for each group, again and again. */
    static _Thread_local bool known;

    if (known) {
        return s;
    }
    s = (struct group_settings){.psn = PSN_RANDOM};
    known = true;
    for (const struct group_setting *i = group_settings_table; i->option; i++) {
        char *why;

        group_setting_parse(i, i->otherwise, &s, &why);
        free(why);
    }
    return s;
}

/* Do all settings make sense?  Words do. */
static bool
are_good(const struct group_settings *s)
{
    struct group_settings other = *s; /* checks may change it. */
    bool good = true;

    for (const struct group_setting *i = group_settings_table; i->option && good; i++) {
        uint64_t value = get_field(i, s), max = i->max_for ? i->max_for(s) : i->max;
        char *why = NULL;

        if (!i->words && value != (uint64_t) PSN_RANDOM) {
            good = value >= i->min && value <= max && !(i->check && i->check(&other, value, &why));
        }
        free(why);
    }
    return good;
}

char *
group_settings_mend(struct group_settings *s)
{
    if (are_good(s)) {
        return NULL;
    }
    struct group_settings good = group_settings_default();
    char *problem = NULL;

    for (const struct group_setting *i = group_settings_table; i->option; i++) {
        char *text = group_setting_text(i, s), *why = NULL;

        if (text && group_setting_parse(i, text, &good, &why) && !problem) {
            problem = xasprintf("%s %s: %s", i->option, text, why);
        }
        free(text);
        free(why);
    }
    *s = good;
    return problem;
}

/*
 * Rows.
 */

void
group_settings_read(const struct rrec_group *row, struct group_settings *s)
{
    /* Words always parse: the schema allows no others. */
    *s = group_settings_default();
    tree_mode_parse(row->mode, &s->mode);
    if (row->receivers) {
        receivers_parse(row->receivers, &s->provisioned);
    }
    s->mtu = (uint32_t) row->mtu;
    s->psn = row->n_psn ? row->psn[0] : PSN_RANDOM;
    s->policy.timeout = (uint8_t) row->timeout;
    if (row->policy) {
        loss_policy_parse(row->policy, &s->policy.prune);
    }
    s->policy.liveness_msec = (uint32_t) MIN(row->liveness, UINT32_MAX);
    if (row->n_min_rate) {
        s->policy.min_rate = (uint32_t) MIN(row->min_rate[0], UINT32_MAX);
    }
    if (row->slow) {
        slow_policy_parse(row->slow, &s->policy.lose_slow);
    }
    if (row->nak) {
        nak_policy_parse(row->nak, &s->policy.nak);
    }
    if (row->n_filter) {
        s->policy.filter = row->filter[0];
    }
    if (row->cnp) {
        cnp_source_parse(row->cnp, &s->policy.cnp);
    }
    if (row->n_cnp_window) {
        s->policy.cnp_window_usec = (uint32_t) MIN(row->cnp_window[0], UINT32_MAX);
    }
    if (row->n_trace_slots) {
        s->policy.trace_slots = (uint8_t) MIN(row->trace_slots[0], UINT8_MAX);
    }
    s->connect = row->n_connect_port > 0;
    if (s->connect) {
        s->connect_port = (uint32_t) row->connect_port[0];
    }
}

void
group_settings_write(const struct rrec_group *row, const struct group_settings *s)
{
    int64_t min_rate = s->policy.min_rate, cnp_window = s->policy.cnp_window_usec;
    int64_t trace_slots = s->policy.trace_slots, connect_port = s->connect_port;

    rrec_group_set_mode(row, tree_mode_name(s->mode));
    rrec_group_set_receivers(row, receivers_name(s->provisioned));
    rrec_group_set_mtu(row, s->mtu);
    rrec_group_set_psn(row, &s->psn, s->psn != PSN_RANDOM);
    rrec_group_set_timeout(row, s->policy.timeout);
    rrec_group_set_policy(row, loss_policy_name(s->policy.prune));
    rrec_group_set_liveness(row, s->policy.liveness_msec);
    rrec_group_set_min_rate(row, &min_rate, 1);
    rrec_group_set_slow(row, slow_policy_name(s->policy.lose_slow));
    rrec_group_set_nak(row, nak_policy_name(s->policy.nak));
    rrec_group_set_filter(row, &s->policy.filter, 1);
    rrec_group_set_cnp(row, cnp_source_name(s->policy.cnp));
    rrec_group_set_cnp_window(row, &cnp_window, 1);
    rrec_group_set_trace_slots(row, &trace_slots, 1);
    rrec_group_set_connect_port(row, &connect_port, s->connect);
}

char *
tree_policy_read(const struct rrec_tree_node *row, struct group_policy *p)
{
    /* Words are empty, and the window is 0, in a converted registry until castd has run. */
    if (row->nak && !nak_policy_parse(row->nak, &p->nak)) {
        return xasprintf("Tree_Node.nak \"%s\": unknown", row->nak);
    }
    if (row->liveness < 0 || row->liveness > UINT32_MAX) {
        return xasprintf("Tree_Node.liveness \"%" PRId64 "\": must be 0..%" PRIu32, row->liveness,
                         UINT32_MAX);
    }
    if (row->min_rate < 0 || row->min_rate > UINT32_MAX) {
        return xasprintf("Tree_Node.min_rate \"%" PRId64 "\": must be 0..%" PRIu32, row->min_rate,
                         UINT32_MAX);
    }
    if (row->timeout < 0 || row->timeout > MAX_TIMEOUT) {
        return xasprintf("Tree_Node.timeout \"%" PRId64 "\": must be 0..%d", row->timeout,
                         MAX_TIMEOUT);
    }
    if (row->cnp && !cnp_source_parse(row->cnp, &p->cnp)) {
        return xasprintf("Tree_Node.cnp \"%s\": unknown", row->cnp);
    }
    if (row->cnp_window < 0 || row->cnp_window > MAX_CNP_WINDOW) {
        return xasprintf("Tree_Node.cnp_window \"%" PRId64 "\": must be 0..%d", row->cnp_window,
                         MAX_CNP_WINDOW);
    }
    if (row->trace_slots < 0 || row->trace_slots > IOAM_MAX_SLOTS) {
        return xasprintf("Tree_Node.trace_slots \"%" PRId64 "\": must be 0..%d", row->trace_slots,
                         IOAM_MAX_SLOTS);
    }
    p->cnp_window_usec = row->cnp_window ? (uint32_t) row->cnp_window : CNP_WINDOW_USEC;
    p->trace_slots = (uint8_t) row->trace_slots;
    p->filter = row->filter;
    p->prune = row->prune;
    p->liveness_msec = (uint32_t) row->liveness;
    p->min_rate = (uint32_t) row->min_rate;
    p->lose_slow = row->lose_slow;
    p->timeout = (uint8_t) row->timeout;
    return NULL;
}

bool
tree_policy_write(const struct rrec_tree_node *row, const struct group_policy *p)
{
    const char *nak = nak_policy_name(p->nak), *cnp = cnp_source_name(p->cnp);

    if (row->nak && !strcmp(row->nak, nak) && row->cnp && !strcmp(row->cnp, cnp)
        && row->cnp_window == p->cnp_window_usec && row->trace_slots == p->trace_slots
        && row->filter == p->filter && row->prune == p->prune && row->liveness == p->liveness_msec
        && row->min_rate == p->min_rate && row->lose_slow == p->lose_slow
        && row->timeout == p->timeout) {
        return false;
    }
    rrec_tree_node_set_nak(row, nak);
    rrec_tree_node_set_filter(row, p->filter);
    rrec_tree_node_set_prune(row, p->prune);
    rrec_tree_node_set_liveness(row, p->liveness_msec);
    rrec_tree_node_set_min_rate(row, p->min_rate);
    rrec_tree_node_set_lose_slow(row, p->lose_slow);
    rrec_tree_node_set_timeout(row, p->timeout);
    rrec_tree_node_set_cnp(row, cnp);
    rrec_tree_node_set_cnp_window(row, p->cnp_window_usec);
    rrec_tree_node_set_trace_slots(row, p->trace_slots);
    return true;
}
