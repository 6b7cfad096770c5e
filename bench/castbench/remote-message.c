/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages between castbench and castbench serve (see remote-message.h).
 */
#include "bench/castbench/remote-message.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define MAX_LINE (1u << 20)

bool
message_send(int fd, json_t *message)
{
    char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;
    size_t len = text ? strlen(text) + 1 : 0, sent = 0;

    if (text) {
        text[len - 1] = '\n'; /* in place of the zero. */
    }
    while (sent < len) {
        ssize_t n = send(fd, text + sent, len - sent, MSG_NOSIGNAL);

        if (n < 0 && errno != EINTR) {
            break;
        }
        sent += n > 0 ? (size_t) n : 0;
    }
    free(text);
    json_decref(message);
    return len && sent == len;
}

/* Appends a byte.  False: there is no room. */
static bool
append(char **line, size_t *len, size_t *size, char c)
{
    if (*len == *size) {
        char *more = *size < MAX_LINE ? realloc(*line, *size = *size ? 2 * *size : 256) : NULL;

        if (!more) {
            return false;
        }
        *line = more;
    }
    (*line)[(*len)++] = c;
    return true;
}

json_t *
message_receive(int fd)
{
    size_t size = 0, len = 0;
    char *line = NULL, c = '\0';
    json_t *message = NULL;
    ssize_t n;

    while (((n = recv(fd, &c, 1, 0)) == 1 && c != '\n' && append(&line, &len, &size, c))
           || (n < 0 && errno == EINTR)) {
    }
    if (n == 1 && c == '\n') {
        message = json_loadb(line, len, 0, NULL);
    }
    free(line);
    if (message && !json_is_object(message)) {
        json_decref(message);
        message = NULL;
    }
    return message;
}

bool
message_number(const json_t *message, const char *key, uint64_t max, uint64_t *v)
{
    const json_t *value = json_object_get(message, key);
    json_int_t n = json_integer_value(value);

    *v = (uint64_t) n;
    return json_is_integer(value) && n >= 0 && (uint64_t) n <= max;
}

bool
message_numbers(const json_t *message, const char *key, uint32_t list[], unsigned n)
{
    const json_t *array = json_object_get(message, key);

    for (unsigned i = 0; i < n; i++) {
        const json_t *value = json_array_get(array, i);
        json_int_t v = json_integer_value(value);

        if (!json_is_integer(value) || v < 0 || v > UINT32_MAX) {
            return false;
        }
        list[i] = (uint32_t) v;
    }
    return json_array_size(array) == n;
}

json_t *
message_list(const uint32_t list[], unsigned n)
{
    json_t *array = json_array();

    for (unsigned i = 0; i < n; i++) {
        json_array_append_new(array, json_integer(list[i]));
    }
    return array;
}

/* What a receiver needs to know of a group, in this order. */
enum { GROUP_EPOCH, GROUP_QPN, GROUP_PSN, GROUP_MTU, GROUP_TIMEOUT, N_GROUP_NUMBERS };

json_t *
message_groups(const struct rocecast_epoch groups[], unsigned n)
{
    json_t *array = json_array();

    for (unsigned i = 0; i < n; i++) {
        const struct rocecast_epoch *g = &groups[i];
        const uint32_t numbers[N_GROUP_NUMBERS] = {
            [GROUP_EPOCH] = g->epoch, [GROUP_QPN] = g->designated_qpn, [GROUP_PSN] = g->start_psn,
            [GROUP_MTU] = g->mtu,     [GROUP_TIMEOUT] = g->qp_timeout,
        };
        char proxy[INET6_ADDRSTRLEN];

        inet_ntop(AF_INET6, &g->proxy, proxy, sizeof proxy);
        json_array_append_new(array, json_pack("{s:s, s:o}", "proxy", proxy, "numbers",
                                               message_list(numbers, N_GROUP_NUMBERS)));
    }
    return array;
}

bool
message_read_groups(const json_t *array, struct rocecast_epoch groups[], unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        const json_t *one = json_array_get(array, i);
        const char *proxy = json_string_value(json_object_get(one, "proxy"));
        uint32_t numbers[N_GROUP_NUMBERS];
        struct rocecast_epoch *g = &groups[i];

        if (!proxy || !message_numbers(one, "numbers", numbers, N_GROUP_NUMBERS)
            || inet_pton(AF_INET6, proxy, &g->proxy) != 1) {
            return false;
        }
        g->epoch = numbers[GROUP_EPOCH];
        g->designated_qpn = numbers[GROUP_QPN];
        g->start_psn = numbers[GROUP_PSN];
        g->mtu = numbers[GROUP_MTU];
        g->qp_timeout = numbers[GROUP_TIMEOUT];
    }
    return json_array_size(array) == n;
}

json_t *
message_results(const struct shared_replica *r, const struct host_count *c)
{
    json_t *rdma = json_array();

    if (c->has_rdma) {
        json_array_append_new(rdma, json_integer((json_int_t) c->repeated));
        json_array_append_new(rdma, json_integer((json_int_t) c->retries));
        json_array_append_new(rdma, json_integer((json_int_t) c->rnr_naks));
    }
    return json_pack("{s:I, s:I, s:s, s:I, s:I, s:f, s:o}", "bytes_ok", (json_int_t) r->bytes_ok,
                     "first_bad", (json_int_t) r->first_bad, "why", r->why, "n_told",
                     (json_int_t) r->n_told, "first_told", (json_int_t) r->first_told, "cpu_s",
                     c->cpu_seconds, "rdma", rdma);
}

static uint64_t
counter(const json_t *array, size_t i)
{
    json_int_t n = json_integer_value(json_array_get(array, i));

    return n > 0 ? (uint64_t) n : 0;
}

bool
message_read_results(const json_t *message, size_t region_len, struct shared_replica *r,
                     struct host_count *c)
{
    const char *why = json_string_value(json_object_get(message, "why"));
    const json_t *rdma = json_object_get(message, "rdma");
    uint64_t bytes_ok, first_bad;

    if (!why || !message_number(message, "bytes_ok", region_len, &bytes_ok)
        || !message_number(message, "first_bad", region_len, &first_bad)
        || !message_number(message, "n_told", INT64_MAX, &r->n_told)
        || !message_number(message, "first_told", INT64_MAX, &r->first_told)) {
        return false;
    }
    r->bytes_ok = bytes_ok;
    r->first_bad = first_bad;
    snprintf(r->why, sizeof r->why, "%s", why);
    *c = (struct host_count){
        .cpu_seconds = json_number_value(json_object_get(message, "cpu_s")),
        .has_rdma = json_array_size(rdma) == 3,
        .repeated = counter(rdma, 0),
        .retries = counter(rdma, 1),
        .rnr_naks = counter(rdma, 2),
    };
    return true;
}
