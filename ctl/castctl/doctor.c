/* SPDX-License-Identifier: Apache-2.0
 *
 * castctl doctor: what on this machine stands in the way.
 *
 * Exit status: 0, also with warnings; 2 if there is a problem; 3 if a registry
 * was named, by --db or ROCECAST_DB, and none of its servers can be used.
 */
#include <config.h>

#include "ctl/castctl/castctl.h"

#include <stdio.h>
#include <stdlib.h>

#include "ctl/doctor/doctor.h"
#include "util.h"

#define DEFAULT_PATH_MTU 1024

/* What a machine is used for, and which checks matter for that. */
static const struct {
    const char *text;
    unsigned int checks;
} checked_roles[] = {
    {"host", DOCTOR_HOST},
    {"switch", DOCTOR_FORWARDER},
    {"agent", DOCTOR_FORWARDER},
    {"lab", DOCTOR_LAB},
};
const struct words ctl_checked_role_words = WORDS_INIT(checked_roles);

static unsigned int
option_role(const struct ctl *ctl)
{
    return ctl_flag(ctl, OPT_CHECKED_ROLE)
               ? checked_roles[ctl_option_word(ctl, OPT_CHECKED_ROLE, 0)].checks
               : DOCTOR_HOST | DOCTOR_FORWARDER | DOCTOR_LAB;
}

static void
print_text(const struct doctor *d)
{
    for (size_t i = 0; i < d->n; i++) {
        const struct doctor_finding *f = &d->findings[i];

        ctl_print_line("%-8s %-12s %s", doctor_state_name(f->state), f->check, f->found);
        if (f->fix) {
            ctl_print_line("%-8s %-12s -> %s", "", "", f->fix);
        }
    }
}

static struct json *
to_json(const struct doctor *d)
{
    struct json *array = json_array_create_empty();

    for (size_t i = 0; i < d->n; i++) {
        const struct doctor_finding *f = &d->findings[i];
        struct json *object = ctl_add_object(array);

        json_object_put_string(object, "check", f->check);
        json_object_put_string(object, "state", doctor_state_name(f->state));
        json_object_put_string(object, "found", f->found);
        json_object_put_string(object, "fix", f->fix ? f->fix : "");
    }
    return array;
}

static void
doctor(struct ctl *ctl)
{
    const char *env = getenv("ROCECAST_DB");
    struct doctor d = {
        .roles = option_role(ctl),
        .path_mtu = (unsigned int) ctl_option_number(ctl, OPT_MTU, 256, 4096, DEFAULT_PATH_MTU),
        .db = ctl->db,
        .db_wanted = ctl->db_given || (env && env[0]),
        .deadline = ctl->deadline,
    };

    doctor_run(&d);
    if (ctl->json) {
        ctl_print(ctl, to_json(&d), NULL);
    } else {
        print_text(&d);
    }

    enum ctl_exit status = d.unreachable                        ? CTL_UNAVAILABLE
                           : doctor_worst(&d) == DOCTOR_PROBLEM ? CTL_REFUSED
                                                                : CTL_OK;

    doctor_uninit(&d);
    if (status) {
        exit(fflush(stdout) ? CTL_PARTIAL : status);
    }
}

const struct ctl_command ctl_doctor_commands[] = {
    {"doctor", "", 0, 0, CTL_LOCAL | FLAG(OPT_CHECKED_ROLE) | FLAG(OPT_MTU), 0, NULL, doctor,
     "what on this machine stands in the way, and what to do; ends with 2 if something does,\n"
     "        with 3 if the registry at --db or ROCECAST_DB cannot be used; --role: only what matters\n"
     "        for that"},
    {.name = NULL},
};
