/* SPDX-License-Identifier: Apache-2.0
 *
 * What the kernel says of network devices and of itself, in the thread's namespace.
 */
#include <config.h>

#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "castfwd/castfwd.h"
#include "openvswitch/dynamic-string.h"
#include "util.h"

static bool
ask(const struct forwarder *f, const char *name, unsigned long what, struct ifreq *answer)
{
    *answer = (struct ifreq){.ifr_ifindex = 0};
    ovs_strzcpy(answer->ifr_name, name, sizeof answer->ifr_name);
    return !ioctl(f->socket, what, answer);
}

int
device_index(const struct forwarder *f, const char *name)
{
    struct ifreq answer;

    return ask(f, name, SIOCGIFINDEX, &answer) ? answer.ifr_ifindex : 0;
}

int
device_mtu(const struct forwarder *f, const char *name)
{
    struct ifreq answer;

    return ask(f, name, SIOCGIFMTU, &answer) ? answer.ifr_mtu : 0;
}

bool
device_is_up(const struct forwarder *f, const char *name)
{
    struct ifreq answer;

    return ask(f, name, SIOCGIFFLAGS, &answer) && answer.ifr_flags & IFF_UP;
}

/* /proc/net is that of the main thread, which is in another namespace. */
char *
proc_net(const char *file)
{
    char *path = xasprintf("/proc/thread-self/net/%s", file);
    FILE *stream = fopen(path, "re");
    struct ds s = DS_EMPTY_INITIALIZER;

    for (int c; stream && (c = getc(stream)) != EOF;) {
        ds_put_char(&s, (char) c);
    }
    if (stream) {
        fclose(stream);
    }
    free(path);
    return ds_steal_cstr(&s);
}

/* The line "  NAME: rx_bytes rx_packets errs drop fifo frame compressed multicast tx_bytes ...". */
void
device_count(const char *name, struct device_counters *c)
{
    char *text = proc_net("dev");
    char *save = NULL;

    *c = (struct device_counters){.rx_bytes = 0};
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *device = line + strspn(line, " ");
        char *next = strchr(device, ':');
        unsigned long long n[16];

        if (!next || strlen(name) != (size_t) (next - device)
            || strncmp(name, device, strlen(name))) {
            continue;
        }
        next++;
        for (size_t i = 0; i < ARRAY_SIZE(n); i++) {
            n[i] = strtoull(next, &next, 10);
        }
        *c = (struct device_counters){.rx_bytes = n[0],
                                      .rx_packets = n[1],
                                      .rx_errors = n[2],
                                      .tx_bytes = n[8],
                                      .tx_packets = n[9],
                                      .tx_errors = n[10] + n[11]};
    }
    free(text);
}
