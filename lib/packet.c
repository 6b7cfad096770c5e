/* SPDX-License-Identifier: Apache-2.0
 *
 * Packet buffers from a fixed pool.
 *
 * The pool is one allocation cut into equal slots; free slots are chained
 * through 'next'.  A packet whose payload others share returns to the pool
 * when the last of them does.  Only a packet that is all head can be
 * shared, so a chain of references is at most one deep.
 *
 * Under AddressSanitizer the bytes of free packets are poisoned.
 */
#include "lib/packet.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/alloc.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(ADDR, SIZE)   ((void) (ADDR), (void) (SIZE))
#define ASAN_UNPOISON_MEMORY_REGION(ADDR, SIZE) ((void) (ADDR), (void) (SIZE))
#endif

/* What packet_replicate() keeps. */
#define ALIGNMENT 4
static_assert(offsetof(struct packet, buf) % ALIGNMENT == 0, "packet buffer's alignment");

#define BUF_SIZE (PACKET_HEADROOM + PACKET_ROOM + ALIGNMENT)
static_assert(PACKET_OVER <= ALIGNMENT, "room behind the largest frame");
#define CACHE_LINE 64
#define SLOT_SIZE  ((sizeof(struct packet) + BUF_SIZE + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE)

struct packet_pool {
    uint8_t *slots;
    struct packet *free;
    unsigned n;
    unsigned n_free;
};

static void
pool_return(struct packet *p)
{
    ASAN_POISON_MEMORY_REGION(p->buf, BUF_SIZE);
    p->next = p->pool->free;
    p->pool->free = p;
    p->pool->n_free++;
}

struct packet_pool *
packet_pool_create(unsigned n)
{
    struct packet_pool *pool = must_calloc(1, sizeof *pool);
    pool->n = n;
    if (!n) {
        return pool;
    }

    pool->slots = aligned_alloc(CACHE_LINE, n * SLOT_SIZE);
    if (!pool->slots) {
        abort();
    }
    for (unsigned i = n; i-- > 0;) {
        struct packet *p = (struct packet *) (void *) (pool->slots + i * SLOT_SIZE);
        memset(p, 0, sizeof *p);
        p->pool = pool;
        pool_return(p);
    }
    return pool;
}

void
packet_pool_destroy(struct packet_pool *pool)
{
    if (pool) {
        assert(pool->n_free == pool->n);
        free(pool->slots);
        free(pool);
    }
}

unsigned
packet_pool_n_free(const struct packet_pool *pool)
{
    return pool->n_free;
}

unsigned
packet_pool_size(const struct packet_pool *pool)
{
    return pool->n;
}

struct packet *
packet_get(struct packet_pool *pool)
{
    struct packet *p = pool->free;
    if (!p) {
        return NULL;
    }
    pool->free = p->next;
    pool->n_free--;
    ASAN_UNPOISON_MEMORY_REGION(p->buf, BUF_SIZE);

    p->data = p->buf + PACKET_HEADROOM;
    p->len = 0;
    p->body_len = 0;
    p->body = NULL;
    p->body_data = NULL;
    p->tail_len = 0;
    p->in_port = 0;
    p->group_qpn = 0;
    p->branch = 0;
    p->came_at = 0;
    p->refs = 1;
    p->next = NULL;
    return p;
}

void
packet_put(struct packet *p)
{
    while (p) {
        struct packet *body = p->body;

        assert(p->refs > 0);
        if (--p->refs) {
            return;
        }
        pool_return(p);
        p = body;
    }
}

struct packet *
packet_from_bytes(struct packet_pool *pool, const void *bytes, size_t len)
{
    struct packet *p = len <= PACKET_ROOM ? packet_get(pool) : NULL;
    if (p) {
        memcpy(p->data, bytes, len);
        p->len = (uint32_t) len;
    }
    return p;
}

void *
packet_push(struct packet *p, size_t n)
{
    if ((size_t) (p->data - p->buf) < n) {
        return NULL;
    }
    p->data -= n;
    p->len += (uint32_t) n;
    return p->data;
}

void *
packet_pull(struct packet *p, size_t n)
{
    if (p->len < n) {
        return NULL;
    }
    p->data += n;
    p->len -= (uint32_t) n;
    return p->data;
}

struct packet *
packet_replicate(struct packet *src, uint32_t ofs, uint32_t head_len, uint8_t tail_len)
{
    assert(!src->body && !src->tail_len);
    assert(ofs <= src->len && head_len <= src->len - ofs && head_len <= PACKET_ROOM);
    assert(tail_len <= PACKET_TAIL && tail_len <= src->len - ofs - head_len);

    struct packet *p = packet_get(src->pool);
    if (!p) {
        return NULL;
    }
    p->data += (uintptr_t) (src->data + ofs - p->data) % ALIGNMENT;
    memcpy(p->data, src->data + ofs, head_len);
    p->len = head_len;
    p->in_port = src->in_port;
    memcpy(p->tail, src->data + src->len - tail_len, tail_len);
    p->tail_len = tail_len;
    p->body_len = src->len - ofs - head_len - tail_len;
    p->came_at = src->came_at;
    if (p->body_len) {
        p->body_data = src->data + ofs + head_len;
        p->body = src;
        src->refs++;
    }
    return p;
}

/* struct iovec serves reading and writing alike and so has no const. */
static struct iovec
iov_make(const uint8_t *bytes, size_t len)
{
    return (struct iovec){(void *) (uintptr_t) bytes, len};
}

int
packet_iov(const struct packet *p, struct iovec iov[3])
{
    int n = 0;

    if (p->len) {
        iov[n++] = iov_make(p->data, p->len);
    }
    if (p->body_len) {
        iov[n++] = iov_make(p->body_data, p->body_len);
    }
    if (p->tail_len) {
        iov[n++] = iov_make(p->tail, p->tail_len);
    }
    return n;
}

size_t
packet_flatten_from(const struct packet *p, size_t ofs, uint8_t *out, size_t size)
{
    size_t head_len = p->len - ofs;

    assert(ofs <= p->len);
    if (packet_size(p) - ofs > size) {
        return 0;
    }
    memcpy(out, p->data + ofs, head_len);
    if (p->body_len) {
        memcpy(out + head_len, p->body_data, p->body_len);
    }
    memcpy(out + head_len + p->body_len, p->tail, p->tail_len);
    return packet_size(p) - ofs;
}

size_t
packet_flatten(const struct packet *p, uint8_t *out, size_t size)
{
    return packet_flatten_from(p, 0, out, size);
}
