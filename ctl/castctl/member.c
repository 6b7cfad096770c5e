/* SPDX-License-Identifier: Apache-2.0
 *
 * castctl member.
 */
#include <config.h>

#include "ctl/castctl/castctl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "ctl/registry/private-data.h"
#include "ctl/registry/request.h"
#include "lib/address-plan.h"
#include "lib/wire.h"
#include "util.h"

/* A registration as the options give it. */
static struct request_member
parse_registration(const struct ctl *ctl)
{
    int n = ctl_flag(ctl, OPT_RKEY) + ctl_flag(ctl, OPT_VA) + ctl_flag(ctl, OPT_LEN);
    struct request_member r = {
        .group = ctl->argv[0],
        .host = ctl->argv[1],
        .qpn = (int64_t) ctl_option_number(ctl, OPT_QPN, QPN_MIN, QPN_MAX, 0),
        .has_region = n > 0,
        .rkey = (int64_t) ctl_option_number(ctl, OPT_RKEY, 0, UINT32_MAX, 0),
        .va = ctl_option_number(ctl, OPT_VA, 0, UINT64_MAX, 0),
        .len = (int64_t) ctl_option_number(ctl, OPT_LEN, 1, INT64_MAX, 0),
        .has_psn = ctl_flag(ctl, OPT_PSN),
        .psn = (int64_t) ctl_option_number(ctl, OPT_PSN, 0, PSN_MASK, 0),
        .keep = ctl_flag(ctl, OPT_KEEP),
        .epoch = (int64_t) ctl_option_number(ctl, OPT_EPOCH, 1, UINT32_MAX, 0),
        .may_exist = ctl_flag(ctl, OPT_MAY_EXIST),
        .replace = ctl_flag(ctl, OPT_REPLACE),
    };

    if (n && n != 3) {
        ctl_fail(CTL_USAGE, "--rkey, --va and --len go together: --%s is missing",
                 !ctl_flag(ctl, OPT_RKEY) ? "rkey"
                 : !ctl_flag(ctl, OPT_VA) ? "va"
                                          : "len");
    }
    if (r.va > UINT64_MAX - (uint64_t) r.len) {
        ctl_fail(CTL_USAGE, "--va %s --len %s: the region runs over the end of the address space",
                 ctl->options[OPT_VA], ctl->options[OPT_LEN]);
    }
    return r;
}

/* A program that listens, as the options give it.  What a queue pair of one's own needs is said when
 * the program is connected. */
static struct request_listener
parse_listener(const struct ctl *ctl)
{
    static const enum ctl_option others[] = {OPT_QPN, OPT_RKEY, OPT_VA,   OPT_LEN,
                                             OPT_PSN, OPT_KEEP, OPT_EPOCH};
    const char *text = ctl->options[OPT_PRIVATE_DATA];
    struct private_data_layout layout;
    char *why;

    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        if (ctl_flag(ctl, others[i])) {
            ctl_fail(CTL_USAGE,
                     "--%s: is for a queue pair of one's own, --listen for a program that "
                     "is connected",
                     ctl_option_name(others[i]));
        }
    }
    if (text && !private_data_parse(text, &layout, &why)) {
        ctl_fail(CTL_USAGE, "--private-data: %s", why);
    }
    return (struct request_listener){
        .group = ctl->argv[0],
        .host = ctl->argv[1],
        .port = (int64_t) ctl_option_number(ctl, OPT_LISTEN, 1, UINT16_MAX, 0),
        .private_data = text ? text : "",
        .replace = ctl_flag(ctl, OPT_REPLACE),
    };
}

static void
add_listener(struct ctl *ctl)
{
    struct request_listener request = parse_listener(ctl);
    char *why;

    if (request_listener_add(ctl->idl, ctl->txn, &request, &why)) {
        ctl_refuse(ctl, "%s", why);
    }
}

static void
member_add(struct ctl *ctl)
{
    char *why;

    if (ctl_flag(ctl, OPT_LISTEN)) {
        add_listener(ctl);
        return;
    }
    if (ctl_flag(ctl, OPT_PRIVATE_DATA)) {
        ctl_fail(CTL_USAGE, "--private-data: needs --listen");
    }
    if (!ctl_flag(ctl, OPT_QPN)) {
        ctl_fail(CTL_USAGE, "member add: --qpn or --listen is missing (castctl member add --help)");
    }
    struct request_member request = parse_registration(ctl);
    if (request_member_add(ctl->idl, ctl->txn, &request, &why)) {
        ctl_refuse(ctl, "%s", why);
    }
}

/* Waits until it is decided whether the registration takes the place of an earlier one. */
static void
wait_for_place(struct ctl *ctl)
{
    struct request_member request = parse_registration(ctl);

    if (ctl_flag(ctl, OPT_LISTEN)) {
        return; /* castd has taken it up; when it is a member depends on the program. */
    }
    for (;;) {
        char *why;
        int error = request_member_answer(ctl->idl, &request, &why);

        if (!error) {
            return;
        }
        if (error != EAGAIN) {
            ctl_refuse(ctl, "%s", why);
        }
        char *standing = xasprintf("not decided after %d s: %s", ctl->timeout, why);
        ctl_wait_for_change(ctl, standing);
        free(standing);
        free(why);
    }
}

static void
leave(struct ctl *ctl, const char *want)
{
    char *why;

    ctl_require_group(ctl, ctl->argv[0]);
    if (request_member_leave(ctl->idl, ctl->argv[0], ctl->argv[1], want, &why)) {
        if (!ctl_flag(ctl, OPT_IF_EXISTS)) {
            ctl_refuse(ctl, "%s", why);
        }
        free(why);
    }
}

static void
member_leave(struct ctl *ctl)
{
    leave(ctl, "left");
}

static void
member_remove(struct ctl *ctl)
{
    leave(ctl, "removed");
}

/* Waits until the member has left or its row is gone. */
static void
wait_until_left(struct ctl *ctl)
{
    for (;;) {
        const struct rrec_group *group = request_find_group(ctl->idl, ctl->argv[0]);
        const struct rrec_member *m =
            group ? request_find_member(ctl->idl, group, ctl->argv[1]) : NULL;
        char *standing;

        if (!m || !strcmp(m->state, "left")) {
            return;
        }
        standing = xasprintf("%s of group %s has not left after %d s: %s%s%s", m->host, group->name,
                             ctl->timeout, m->state, m->status[0] ? ", " : "", m->status);
        ctl_wait_for_change(ctl, standing);
        free(standing);
    }
}

static void
member_list(struct ctl *ctl)
{
    static const char *const keys[] = {"host",       "qpn",           "rkey",          "va",
                                       "len",        "epoch",         "want",          "keep",
                                       "first_psn",  "first_message", "good_messages", "listen",
                                       "connection", "state",         "status",        NULL};

    ctl_print(ctl, ctl_members_to_json(ctl, ctl_require_group(ctl, ctl->argv[0])), keys);
}

const struct ctl_command ctl_member_commands[] = {
    {"member add", "GROUP HOST", 2, 2,
     FLAG(OPT_QPN) | FLAG(OPT_RKEY) | FLAG(OPT_VA) | FLAG(OPT_LEN) | FLAG(OPT_PSN) | FLAG(OPT_KEEP)
         | FLAG(OPT_EPOCH) | FLAG(OPT_LISTEN) | FLAG(OPT_PRIVATE_DATA) | FLAG(OPT_MAY_EXIST)
         | FLAG(OPT_REPLACE) | CTL_ONE_HOST,
     0, member_add, wait_for_place,
     "register a receiver's QP, its region if it takes RDMA WRITE, the PSN that it expects; in place "
     "of a registration of the host that is dead; --keep: the QP outlives epochs; or with --listen a "
     "program that waits for RDMA-CM connections, and where its answer has the region"},
    {"member leave", "GROUP HOST", 2, 2, FLAG(OPT_IF_EXISTS) | CTL_ONE_HOST, 0, member_leave, NULL,
     "take a receiver out, without waiting until it is out"},
    {"member drain", "GROUP HOST", 2, 2, FLAG(OPT_IF_EXISTS) | CTL_ONE_HOST, 0, member_leave,
     wait_until_left, "take a receiver out, and wait until it is out everywhere"},
    {"member remove", "GROUP HOST", 2, 2, FLAG(OPT_IF_EXISTS) | CTL_ONE_HOST, 0, member_remove,
     wait_until_left, "as drain, and forget it"},
    {"member list", "GROUP", 1, 1, 0, 0, NULL, member_list, "list a group's members"},
    {.name = NULL},
};
