/* SPDX-License-Identifier: Apache-2.0
 *
 * The list of checks, and how they look at the machine.
 */
#include <config.h>

#include "ctl/doctor/checks.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util.h"

#define ALL (DOCTOR_HOST | DOCTOR_FORWARDER | DOCTOR_LAB)

static const struct {
    const char *name;
    unsigned int roles; /* DOCTOR_x that it matters for. */
    void (*run)(struct doctor *);
} checks[] = {
    {"rdma_rxe", DOCTOR_HOST | DOCTOR_LAB, doctor_rdma_rxe},
    {"crc32", DOCTOR_HOST | DOCTOR_LAB, doctor_crc32},
    {"rxe-netns", DOCTOR_HOST | DOCTOR_LAB, doctor_rxe_netns},
    {"infiniband", DOCTOR_HOST, doctor_infiniband},
    {"gids", DOCTOR_HOST, doctor_gids},
    {"mtu", DOCTOR_HOST, doctor_mtu},
    {"rdma-cm", DOCTOR_HOST, doctor_rdma_cm},
    {"memlock", DOCTOR_HOST, doctor_memlock},
    {"tun", DOCTOR_FORWARDER | DOCTOR_LAB, doctor_tun},
    {"capabilities", DOCTOR_FORWARDER | DOCTOR_LAB, doctor_capabilities},
    {"xdp", DOCTOR_FORWARDER | DOCTOR_LAB, doctor_xdp},
    {"nftables", ALL, doctor_nftables},
    {"kvm", DOCTOR_LAB, doctor_kvm},
    {"leftovers", DOCTOR_LAB, doctor_labs},
    {"sockets", ALL, doctor_sockets},
    {"socket-path", ALL, doctor_socket_paths},
    {"registry", ALL, doctor_registry},
};

static void
run(struct doctor *d, size_t i)
{
    d->check = checks[i].name;
    checks[i].run(d);
}

void
doctor_run(struct doctor *d)
{
    for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
        if (checks[i].roles & d->roles) {
            run(d, i);
        }
    }
}

void
doctor_run_one(struct doctor *d, const char *check)
{
    for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
        if (!strcmp(checks[i].name, check)) {
            run(d, i);
            return;
        }
    }
    OVS_NOT_REACHED();
}

void
doctor_uninit(struct doctor *d)
{
    for (size_t i = 0; i < d->n; i++) {
        free(d->findings[i].found);
        free(d->findings[i].fix);
    }
    free(d->findings);
    d->findings = NULL;
    d->n = 0;
}

const char *
doctor_state_name(enum doctor_state state)
{
    static const char *const names[] = {"ok", "warning", "problem"};
    return names[state];
}

enum doctor_state
doctor_worst(const struct doctor *d)
{
    enum doctor_state worst = DOCTOR_OK;
    for (size_t i = 0; i < d->n; i++) {
        worst = MAX(worst, d->findings[i].state);
    }
    return worst;
}

void
doctor_ok(struct doctor *d, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    doctor_add(d, DOCTOR_OK, xvasprintf(format, args), NULL);
    va_end(args);
}

void
doctor_add(struct doctor *d, enum doctor_state state, char *found, char *fix)
{
    d->findings = xrealloc(d->findings, (d->n + 1) * sizeof *d->findings);
    d->findings[d->n++] =
        (struct doctor_finding){.check = d->check, .state = state, .found = found, .fix = fix};
}

/*
 * Files.
 */

char *
doctor_path(const char *format, ...)
{
    const char *root = getenv("ROCECAST_SYSROOT");
    va_list args;
    va_start(args, format);
    char *path = xvasprintf(format, args);
    va_end(args);
    char *full = xasprintf("%s%s", root ? root : "", path);
    free(path);
    return full;
}

bool
doctor_exists(char *path)
{
    bool exists = !access(path, F_OK);
    free(path);
    return exists;
}

char *
doctor_line_with(char *path, const char *text)
{
    FILE *stream = fopen(path, "re");
    char *line = NULL;
    size_t size = 0;
    bool found = false;
    free(path);
    /* Reading an empty slot of a GID table is an error. */
    while (stream && !found && getline(&line, &size, stream) >= 0) {
        found = strstr(line, text) != NULL;
    }
    if (stream) {
        fclose(stream);
    }
    if (!found) {
        free(line);
        return NULL;
    }
    line[strcspn(line, "\n")] = '\0';
    return line;
}

char *
doctor_line(char *path)
{
    return doctor_line_with(path, "");
}

bool
doctor_contains(char *path, const char *text)
{
    char *line = doctor_line_with(path, text);
    bool found = line != NULL;
    free(line);
    return found;
}

void
doctor_names(char *folder, const char *prefix, struct svec *names)
{
    DIR *dir = opendir(folder);
    free(folder);
    svec_init(names);
    for (struct dirent *d; dir && (d = readdir(dir));) {
        if (d->d_name[0] != '.' && !strncmp(d->d_name, prefix, strlen(prefix))) {
            svec_add(names, d->d_name);
        }
    }
    if (dir) {
        closedir(dir);
    }
    svec_sort(names);
}

char *
doctor_output(const char *command, int *status)
{
    char *whole = xasprintf("PATH=$PATH:/usr/sbin:/sbin; %s 2>&1", command);
    FILE *stream = popen(whole, "r");
    char *text = NULL;
    size_t size = 0;
    free(whole);
    if (!stream || getdelim(&text, &size, '\0', stream) < 0) {
        free(text);
        text = xstrdup("");
    }
    *status = stream ? pclose(stream) : -1;
    return text;
}

bool
doctor_has_capability(unsigned int capability)
{
    static const char prefix[] = "CapEff:";
    char *line = doctor_line_with(doctor_path("/proc/self/status"), prefix);
    unsigned long long mask = line ? strtoull(line + strlen(prefix), NULL, 16) : 0;
    free(line);
    return mask >> capability & 1;
}

bool
doctor_kernel_since(int major, int minor)
{
    char *release = doctor_line(doctor_path("/proc/sys/kernel/osrelease"));
    char *end = NULL;
    long a = release ? strtol(release, &end, 10) : 0;
    long b = end && *end == '.' ? strtol(end + 1, NULL, 10) : 0;
    free(release);
    return a > major || (a == major && b >= minor);
}
