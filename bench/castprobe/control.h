/* SPDX-License-Identifier: Apache-2.0
 *
 * What the two ends of a probe say to each other: JSON objects, one a line, over TCP.  Each request
 * has one answer; an answer with "error" says why it was not done.
 */
#ifndef BENCH_CASTPROBE_CONTROL_H
#define BENCH_CASTPROBE_CONTROL_H 1

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define CONTROL_PORT    18514
#define CONTROL_VERSION 1
#define CONTROL_LINE    16384 /* the longest, with its end. */

struct control {
    FILE *in;
    int fd;
};

/* A socket that listens, or -1 with errno. */
int control_listen(uint16_t port);
/* A UDP socket with the same port. */
int control_hear(uint16_t port);
/* Waits for somebody who connects; false with errno. */
bool control_accept(struct control *, int listener);
/* NULL, or why it could not be connected: a static string. */
const char *control_connect(struct control *, const char *host, uint16_t port);
void control_close(struct control *);

/* Takes the reference; false: the other end has gone. */
bool control_send(struct control *, json_t *);
/* A new reference; NULL: the other end has gone, or said something else than JSON. */
json_t *control_receive(struct control *);

#endif /* bench/castprobe/control.h */
