/* SPDX-License-Identifier: Apache-2.0
 *
 * Bringing a replica up to date.
 *
 * A block is dirty at a replica from when a write that the replica does not get
 * is done, until the block is read elsewhere to be sent.  Not earlier: who is
 * asked to read before a write is done may not have it yet.
 *
 * What is sent may cross with writes that the group brings.  These are newer or
 * the same, so the replica leaves blocks alone that the group has written.
 */
#include <stdlib.h>
#include <string.h>

#include "disk-private.h"

bool
resync_init(struct replica *r)
{
    r->dirty = calloc(disk.size / BLOCK_SIZE / 8 + 1, 1);
    for (unsigned i = 0; i < N_PIECES; i++) {
        r->pieces[i].to = r;
    }
    return r->dirty != NULL;
}

static bool
is_dirty(const struct replica *r, uint64_t block)
{
    return r->dirty[block / 8] >> block % 8 & 1;
}

static void
flip(struct replica *r, uint64_t block)
{
    r->dirty[block / 8] ^= (unsigned char) (1 << block % 8);
}

void
dirty_set(struct replica *r, uint64_t offset, uint64_t length)
{
    for (uint64_t b = offset / BLOCK_SIZE; b < (offset + length) / BLOCK_SIZE; b++) {
        if (!is_dirty(r, b)) {
            flip(r, b);
            r->n_dirty++;
            r->n_dirtied++;
        }
    }
}

void
dirty_clear(struct replica *r, uint64_t offset, uint64_t length)
{
    for (uint64_t b = offset / BLOCK_SIZE; b < (offset + length) / BLOCK_SIZE; b++) {
        if (is_dirty(r, b)) {
            flip(r, b);
            r->n_dirty--;
            r->n_dirtied--;
        }
    }
}

/* Takes the next run of dirty blocks out of the map.  False: there is none behind the cursor. */
static bool
take_run(struct replica *r, struct piece *p)
{
    uint64_t n_blocks = disk.size / BLOCK_SIZE, b = r->n_dirty ? r->cursor : n_blocks;

    while (b < n_blocks && !is_dirty(r, b)) {
        b++;
    }
    p->offset = b * BLOCK_SIZE;
    for (p->length = 0; b < n_blocks && is_dirty(r, b) && p->length < SLOT_DATA; b++) {
        flip(r, b);
        r->n_dirty--;
        p->length += BLOCK_SIZE;
    }
    r->cursor = b;
    return p->length > 0;
}

void
piece_lose(struct piece *p)
{
    struct replica *r = p->to;
    uint64_t n_dirtied = r->n_dirtied;

    dirty_set(r, p->offset, p->length);
    if (!p->sent) {
        r->n_dirtied = n_dirtied; /* they have been dirty all the time. */
    }
    if (r->cursor > p->offset / BLOCK_SIZE) {
        r->cursor = p->offset / BLOCK_SIZE;
    }
    p->length = 0;
}

bool
pieces_busy(const struct replica *r)
{
    for (unsigned i = 0; i < N_PIECES; i++) {
        if (r->pieces[i].length) {
            return true;
        }
    }
    return false;
}

/* Begins pieces as long as there are dirty blocks.  False: there are none behind the cursor. */
static bool
send_pieces(struct replica *r)
{
    for (unsigned i = 0; i < N_PIECES; i++) {
        struct piece *p = &r->pieces[i];

        if (p->length) {
            continue;
        }
        if (!take_run(r, p)) {
            return false;
        }
        p->read = (struct read){.piece = p, .length = p->length};
        p->sent = false;
        if (!replicas_read(&p->read, p->offset)) {
            piece_lose(p);
            return true;
        }
    }
    return true;
}

/* Writes may be done that the group has brought and the replica has not yet taken: those before the
 * source knew that it is to wait for this replica. */
static bool
has_all(const struct replica *r)
{
    return !r->n_dirty && disk.completed >= r->first && r->durable >= disk.completed;
}

void
resync_run(struct replica *r)
{
    if (r->state != COPYING && r->state != FILLING) {
        return;
    }
    if (r->state == FILLING && r->n_dirty) {
        r->cursor = 0;
    }
    if (send_pieces(r) || pieces_busy(r)) {
        return;
    }
    if (r->state == COPYING) {
        /* What is dirty behind the cursor was written meanwhile, and there will always be some. */
        r->state = JOINING;
        r->join_at = disk.next;
        if (!link_say(r->link, MSG_JOIN, r->join_at, 0, 0)) {
            replica_lose(r, "takes no messages");
        }
    } else if (has_all(r) && r->asked_generation != disk.generation) {
        r->asked_generation = disk.generation;
        if (!link_say(r->link, MSG_SAVE, disk.generation, 0, 0)) {
            replica_lose(r, "takes no messages");
        }
    }
}

bool
piece_take(struct piece *p, const void *data)
{
    struct message *m = link_prepare(p->to->link);

    if (!m) {
        return false;
    }
    m->type = MSG_RESYNC;
    m->offset = p->offset;
    m->length = p->length;
    memcpy(message_data(m), data, p->length);
    link_send(p->to->link, m, p->length);
    p->sent = true;
    p->to->n_resent += p->length / BLOCK_SIZE;
    return true;
}

bool
piece_done(struct replica *r, uint64_t offset)
{
    for (unsigned i = 0; i < N_PIECES; i++) {
        struct piece *p = &r->pieces[i];

        /* Blocks that got dirty again may be under way in another one, from the same offset on. */
        if (p->length && p->sent && p->offset == offset) {
            p->length = 0;
            return true;
        }
    }
    return false;
}

void
pieces_lose(struct replica *r)
{
    for (unsigned i = 0; i < N_PIECES; i++) {
        struct piece *p = &r->pieces[i];

        if (p->length) {
            if (!p->sent) {
                replicas_forget(&p->read);
            }
            piece_lose(p);
        }
    }
}
