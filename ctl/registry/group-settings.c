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
#include "util.h"

#define DEFAULT_LIVENESS 10000 /* ms. */
#define MAX_LIVENESS     3600000
#define MAX_TIMEOUT      31

/*
 * Values.
 */

static const char *const on_off[] = {"on", "off"};
static const struct words on_off_words = WORDS_INIT(on_off);

static int
parse_number(const char *text, uint64_t min, uint64_t max, uint64_t *value, char **whyp)
{
    if (number_parse(text, min, max, value)) {
        return 0;
    }
    *whyp = xasprintf("must be %" PRIu64 "..%" PRIu64, min, max);
    return EINVAL;
}

static int
parse_mode(const char *text, struct group_settings *s, char **whyp OVS_UNUSED)
{
    return tree_mode_parse(text, &s->mode) ? 0 : EINVAL;
}

static char *
mode_text(const struct group_settings *s)
{
    return xstrdup(tree_mode_name(s->mode));
}

static int
parse_receivers(const char *text, struct group_settings *s, char **whyp OVS_UNUSED)
{
    return receivers_parse(text, &s->provisioned) ? 0 : EINVAL;
}

static char *
receivers_text(const struct group_settings *s)
{
    return xstrdup(receivers_name(s->provisioned));
}

static int
parse_mtu(const char *text, struct group_settings *s, char **whyp)
{
    uint64_t mtu;
    int error = parse_number(text, 256, 4096, &mtu, whyp);

    if (error) {
        return error;
    }
    if (mtu & (mtu - 1)) {
        *whyp = xstrdup("must be 256, 512, 1024, 2048 or 4096");
        return EINVAL;
    }
    s->mtu = (uint32_t) mtu;
    return 0;
}

static char *
mtu_text(const struct group_settings *s)
{
    return xasprintf("%" PRIu32, s->mtu);
}

static int
parse_psn(const char *text, struct group_settings *s, char **whyp)
{
    uint64_t psn;
    int error = parse_number(text, 0, PSN_MASK, &psn, whyp);

    if (!error) {
        s->psn = (int64_t) psn;
    }
    return error;
}

static char *
psn_text(const struct group_settings *s)
{
    return s->psn == PSN_RANDOM ? NULL : xasprintf("%" PRId64, s->psn);
}

/* Four times the QPs' time-out in milliseconds: a requester asks again not before that has passed, and
 * it takes some of its questions to call a receiver silent. */
static uint64_t
liveness_min(uint8_t timeout)
{
    return ((4096 * 4ull << timeout) + 999999) / 1000000;
}

/* With it comes the default of the liveness time. */
static int
parse_timeout(const char *text, struct group_settings *s, char **whyp)
{
    uint64_t timeout;
    int error = parse_number(text, 1, MAX_TIMEOUT, &timeout, whyp);

    if (!error) {
        s->policy.timeout = (uint8_t) timeout;
        s->policy.liveness_msec = (uint32_t) MAX(DEFAULT_LIVENESS, liveness_min(s->policy.timeout));
    }
    return error;
}

static char *
timeout_text(const struct group_settings *s)
{
    return xasprintf("%d", s->policy.timeout);
}

static int
parse_policy(const char *text, struct group_settings *s, char **whyp OVS_UNUSED)
{
    return loss_policy_parse(text, &s->policy.prune) ? 0 : EINVAL;
}

static char *
policy_text(const struct group_settings *s)
{
    return xstrdup(loss_policy_name(s->policy.prune));
}

static int
parse_liveness(const char *text, struct group_settings *s, char **whyp)
{
    uint64_t msec, min = liveness_min(s->policy.timeout);
    int error = parse_number(text, 0, MAX(MAX_LIVENESS, min), &msec, whyp);

    if (error) {
        return error;
    }
    if (msec && msec < min) {
        *whyp = xasprintf("must be 0 (never) or at least %" PRIu64
                          " ms, 4 times the QPs' time-out (4.096 us * 2^%d)",
                          min, s->policy.timeout);
        return ERANGE;
    }
    s->policy.liveness_msec = (uint32_t) msec;
    return 0;
}

static char *
liveness_text(const struct group_settings *s)
{
    return xasprintf("%" PRIu32, s->policy.liveness_msec);
}

static int
parse_nak(const char *text, struct group_settings *s, char **whyp OVS_UNUSED)
{
    return nak_policy_parse(text, &s->policy.nak) ? 0 : EINVAL;
}

static char *
nak_text(const struct group_settings *s)
{
    return xstrdup(nak_policy_name(s->policy.nak));
}

static int
parse_filter(const char *text, struct group_settings *s, char **whyp OVS_UNUSED)
{
    unsigned int off;

    if (!words_parse(&on_off_words, text, &off)) {
        return EINVAL;
    }
    s->policy.filter = !off;
    return 0;
}

static char *
filter_text(const struct group_settings *s)
{
    return xstrdup(on_off[!s->policy.filter]);
}

/*
 * The table.
 */

const struct group_setting group_settings_table[] = {
    {"mode", "mode", NULL, &tree_mode_words, "replicate", SETTING_NOT_STARTED, SETTING_WORD,
     "how packets get to the edges", parse_mode, mode_text},
    {"receivers", "receivers", NULL, &receivers_words, "tlv", SETTING_NOT_STARTED, SETTING_WORD,
     "how an edge knows for whom a packet is: the packet says so, or castd has", parse_receivers,
     receivers_text},
    {"mtu", "mtu", "BYTES", NULL, "1024", SETTING_FIXED, SETTING_NUMBER,
     "path MTU: 256, 512, 1024, 2048 or 4096", parse_mtu, mtu_text},
    {"psn", NULL, "PSN", NULL, "random in each epoch", SETTING_FIXED, SETTING_NUMBER,
     "start PSN of all epochs", parse_psn, psn_text},
    {"timeout", "qp_timeout", "T", NULL, "20", SETTING_FIXED, SETTING_NUMBER,
     "recommended time-out of the QPs, 1..31: 4.096 us * 2^T", parse_timeout, timeout_text},
    {"policy", "policy", NULL, &loss_policy_words, "fail-group", SETTING_ANY_TIME, SETTING_WORD,
     "what becomes of a group that loses members: it fails, or goes on without them", parse_policy,
     policy_text},
    {"liveness", "liveness", "MS", NULL, "10000, or 4 time-outs if that is more", SETTING_ANY_TIME,
     SETTING_NUMBER, "ms of silence after which a member is lost; 0: never", parse_liveness,
     liveness_text},
    {"nak", "nak", NULL, &nak_policy_words, "hold", SETTING_ANY_TIME, SETTING_WORD,
     "what becomes of a NAK while other members have confirmed less", parse_nak, nak_text},
    {"filter", "filter", NULL, &on_off_words, "on", SETTING_ANY_TIME, SETTING_ON_OFF,
     "what is sent again spares members that have confirmed it", parse_filter, filter_text},
    {.option = NULL},
};

size_t
group_settings_count(void)
{
    return ARRAY_SIZE(group_settings_table) - 1;
}

char *
group_setting_argument(const struct group_setting *setting)
{
    return setting->words ? words_join(setting->words, WORDS_ALL, "|", "|") : xstrdup(setting->arg);
}

int
group_setting_parse(const struct group_setting *setting, const char *text, struct group_settings *s,
                    char **whyp)
{
    int error;

    *whyp = NULL;
    error = setting->parse(text, s, whyp);
    if (error && !*whyp) {
        char *words = words_join(setting->words, WORDS_ALL, ", ", " or ");

        *whyp = xasprintf("must be %s", words);
        free(words);
    }
    return error;
}

/* Defaults that are in words are no values, and stay as they are: that of the PSN is here, that of
 * the liveness time comes with the time-out. */
struct group_settings
group_settings_default(void)
{
    struct group_settings s = {.psn = PSN_RANDOM};

    for (const struct group_setting *i = group_settings_table; i->option; i++) {
        char *why;

        group_setting_parse(i, i->otherwise, &s, &why);
        free(why);
    }
    return s;
}

char *
group_settings_mend(struct group_settings *s)
{
    struct group_settings good = group_settings_default();
    char *problem = NULL;

    for (const struct group_setting *i = group_settings_table; i->option; i++) {
        char *text = i->text(s), *why = NULL;

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
    /* Of words the schema has no others. */
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
    if (row->nak) {
        nak_policy_parse(row->nak, &s->policy.nak);
    }
    if (row->n_filter) {
        s->policy.filter = row->filter[0];
    }
}

void
group_settings_write(const struct rrec_group *row, const struct group_settings *s)
{
    rrec_group_set_mode(row, tree_mode_name(s->mode));
    rrec_group_set_receivers(row, receivers_name(s->provisioned));
    rrec_group_set_mtu(row, s->mtu);
    rrec_group_set_psn(row, &s->psn, s->psn != PSN_RANDOM);
    rrec_group_set_timeout(row, s->policy.timeout);
    rrec_group_set_policy(row, loss_policy_name(s->policy.prune));
    rrec_group_set_liveness(row, s->policy.liveness_msec);
    rrec_group_set_nak(row, nak_policy_name(s->policy.nak));
    rrec_group_set_filter(row, &s->policy.filter, 1);
}

char *
tree_policy_read(const struct rrec_tree_node *row, struct group_policy *p)
{
    /* Empty: of a registry that has been converted, and castd was not there yet. */
    if (row->nak && !nak_policy_parse(row->nak, &p->nak)) {
        return xasprintf("Tree_Node.nak \"%s\": unknown", row->nak);
    }
    if (row->liveness < 0 || row->liveness > UINT32_MAX) {
        return xasprintf("Tree_Node.liveness \"%" PRId64 "\": must be 0..%" PRIu32, row->liveness,
                         UINT32_MAX);
    }
    if (row->timeout < 0 || row->timeout > MAX_TIMEOUT) {
        return xasprintf("Tree_Node.timeout \"%" PRId64 "\": must be 0..%d", row->timeout,
                         MAX_TIMEOUT);
    }
    p->filter = row->filter;
    p->prune = row->prune;
    p->liveness_msec = (uint32_t) row->liveness;
    p->timeout = (uint8_t) row->timeout;
    return NULL;
}

bool
tree_policy_write(const struct rrec_tree_node *row, const struct group_policy *p)
{
    const char *nak = nak_policy_name(p->nak);

    if (row->nak && !strcmp(row->nak, nak) && row->filter == p->filter && row->prune == p->prune
        && row->liveness == p->liveness_msec && row->timeout == p->timeout) {
        return false;
    }
    rrec_tree_node_set_nak(row, nak);
    rrec_tree_node_set_filter(row, p->filter);
    rrec_tree_node_set_prune(row, p->prune);
    rrec_tree_node_set_liveness(row, p->liveness_msec);
    rrec_tree_node_set_timeout(row, p->timeout);
    return true;
}
