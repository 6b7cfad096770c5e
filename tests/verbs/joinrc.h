/* SPDX-License-Identifier: Apache-2.0
 *
 * What the files of joinrc share: how it ends, what it asks castctl for, and the
 * messages that it sends and expects.
 */
#ifndef TESTS_VERBS_JOINRC_H
#define TESTS_VERBS_JOINRC_H 1

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit codes.  A work request that completes with an error status s ends the
 * program with EXIT_COMPLETION + s (enum ibv_wc_status). */
enum {
    EXIT_USAGE = 1,   /* bad option, file or device */
    EXIT_REFUSED = 2, /* castctl refused or failed */
    EXIT_TIMEOUT = 3, /* nothing happened for --timeout seconds */
    EXIT_COMPLETION = 64,
};

void die(int code, const char *format, ...) __attribute__((noreturn, format(printf, 2, 3)));

/* castctl (joinrc-castctl.c). */

/* Runs castctl with 'argv' (NULL at the end) and collects its output, NUL
 * terminated.  castctl bounds its own run time.  Returns its exit status. */
int castctl(char *output, size_t size, const char *const argv[]);

#define CASTCTL(OUT, ...) \
    castctl(OUT, sizeof(OUT), (const char *const[]){"castctl", __VA_ARGS__, NULL})

/* What `castctl group show` says, as far as a QP needs it. */
struct group {
    uint32_t epoch, dest_qpn, start_psn, rkey, mtu, timeout;
    uint64_t region_len;
    union ibv_gid proxy;
};

struct group group_show(const char *name);

/* Messages (joinrc-messages.c). */

enum op { OP_WRITE, OP_WRITE_IMM, OP_SEND, OP_SEND_IMM, OP_READ, OP_ATOMIC, N_OPS };

/* A message is of the bytes [ofs, ofs + len) of the source's file, and these
 * arrive at the same place of a receiver's region, whatever the operation. */
struct message {
    enum op op;
    size_t ofs;
    uint32_t len;
};

struct messages {
    struct message *list;
    size_t n;
    size_t bytes; /* all of them. */
};

enum op op_parse(const char *text);
/* Of "OP:LEN,..."; they follow one another in the buffer. */
struct messages messages_parse(const char *text);
/* 'bytes' in messages of 'size', the last of which may be shorter. */
struct messages messages_of_blocks(enum op, size_t bytes, uint32_t size);
/* Are there WRITEs among them, READs or atomics, which need the group's region? */
bool messages_need_region(const struct messages *);

/* The work request for message k, without addresses and keys.  Its immediate
 * data, if it has any, depends on k. */
struct ibv_send_wr message_request(const struct messages *, size_t k);

/* Posts receives in the region 'mr': for each message from *k on that takes one,
 * 'max' at most, and one more after the last message.  Nothing may take that: it
 * shows whether a message was received twice.  Moves *k past the messages done. */
void receives_post(struct ibv_qp *, const struct ibv_mr *mr, const struct messages *, size_t *k,
                   size_t max, bool too_short);
/* Prints what was received. */
void receive_print(const struct ibv_wc *);

#endif /* tests/verbs/joinrc.h */
