/* SPDX-License-Identifier: Apache-2.0
 *
 * Is a run possible, and the memory that its processes share (see run-private.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/castbench/run-private.h"

/* Finds the addresses of all members. */
static bool
resolve(const struct run_options *o, struct in6_addr *addresses, char *error, size_t size)
{
    const char *hosts[1 + MAX_RECEIVERS] = {o->source};

    for (unsigned i = 0; i < o->n_receivers; i++) {
        hosts[1 + i] = o->receivers[i];
    }
    return !registry_host_addresses(hosts, 1 + o->n_receivers, addresses, error, size);
}

static bool
check_groups(const struct run_options *o, char *error, size_t size)
{
    struct rocecast_epoch group;
    uint32_t mtu = 0;

    for (unsigned q = 0; o->scheme == SCHEME_MCAST && q < o->qps; q++) {
        if (registry_group_show(o->groups[q], &group, error, size)) {
            return false;
        }
        if (o->mtu && o->mtu != group.mtu) {
            return refuse(error, size, "-m %" PRIu32 ": the path MTU of group %s is %" PRIu32,
                          o->mtu, o->groups[q], group.mtu);
        }
        if (o->rdma_cm && !group.connect_port) {
            return refuse(error, size,
                          "-R: group %s takes no RDMA-CM connections (castctl group set %s "
                          "--connect)",
                          o->groups[q], o->groups[q]);
        }
        if (q && group.mtu != mtu) {
            return refuse(error, size, "the path MTU of group %s is %" PRIu32 ", of %s %" PRIu32,
                          o->groups[q], group.mtu, o->groups[0], mtu);
        }
        mtu = group.mtu;
    }
    return true;
}

static uint32_t
chunk_of(const struct run_options *o)
{
    return o->scheme == SCHEME_CHAIN_PIPE && o->chunk < o->size ? o->chunk : o->size;
}

/* Finds the shape of the run's bytes.  False: there is none. */
static bool
content_of(const struct run_options *o, struct content *content, uint64_t *n_blocks, char *error,
           size_t size)
{
    size_t len = 0;

    *n_blocks = o->count;
    if (!o->file) {
        *content = content_init(o->pattern, o->size, o->count ? o->warmup + o->count : 0,
                                o->region_max, o->seed);
        return content->n_slots
               || refuse(error, size, "-s %" PRIu32 ": larger than the region", o->size);
    }
    int status = content_file_len(o->file, &len);
    if (status || !len || len > REGION_MAX) {
        return refuse(error, size, "--file %s: %s", o->file,
                      status ? strerror(status) : "must have 1 byte to 64 MiB");
    }
    *content = content_init_file(o->size, o->count ? o->warmup + o->count : 0, len);
    *n_blocks = o->count ? o->count : content->n_slots;
    return true;
}

bool
run_check(const struct run_options *o, char *error, size_t size)
{
    uint32_t chunk = chunk_of(o), n_pieces = (o->size + chunk - 1) / chunk;
    struct machine_count machine;
    struct in6_addr addresses[1 + MAX_RECEIVERS];
    struct content content;
    uint64_t n_blocks;

    n_pieces += o->pattern == PATTERN_APPEND;
    if (o->pattern == PATTERN_APPEND && o->qps > 1) {
        return refuse(error, size,
                      "--pattern append: must have one QP: nothing orders a tail behind "
                      "records that come on another");
    }
    if (o->rate > 0 && o->rate * o->timeout < 1) {
        return refuse(error, size, "--rate %g: less than a block in the %u s of --timeout", o->rate,
                      o->timeout);
    }
    if (n_pieces > MAX_PIECES || n_pieces * o->depth > MAX_WR) {
        return refuse(error, size,
                      "%u blocks outstanding, each of %" PRIu32 " pieces of %" PRIu32
                      " bytes: more than %d work requests",
                      o->depth, n_pieces, chunk, MAX_WR);
    }
    return content_of(o, &content, &n_blocks, error, size) && check_groups(o, error, size)
           && resolve(o, addresses, error, size)
           && machine_count_read(&o->counted, &machine, error, size);
}

/* Schemes are compared with the same packets, hence with the group's MTU. */
static bool
fill_mtu(struct shared *shared, const struct run_options *o, char *error, size_t size)
{
    struct rocecast_epoch group = {.mtu = DEFAULT_MTU};

    if (!o->mtu && o->groups[0] && registry_group_show(o->groups[0], &group, error, size)) {
        return false;
    }
    shared->mtu = o->mtu ? o->mtu : group.mtu;
    return true;
}

/* Bytes of a sector, such that every packet has a stamp. */
static uint32_t
sector_of(const struct shared *shared)
{
    uint32_t n = shared->chunk < shared->mtu ? shared->chunk : shared->mtu;

    return n < SECTOR_MIN ? SECTOR_MIN : n < SECTOR_MAX ? n : SECTOR_MAX;
}

static bool
fill_lives(struct shared *shared, const struct run_options *o, char *error, size_t size)
{
    struct in6_addr addresses[1 + MAX_RECEIVERS];

    if (!resolve(o, addresses, error, size)) {
        return false;
    }
    shared->addresses[0] = addresses[0];
    shared->n_lives =
        lives_of(o->receivers, o->n_receivers, o->events, o->n_events, shared->lives, error, size);
    for (unsigned i = 0; i < shared->n_lives; i++) {
        shared->addresses[1 + i] = addresses[1 + shared->lives[i].receiver];
    }
    return shared->n_lives;
}

/* Fills in the part that the parent writes. */
static bool
shared_fill(struct shared *shared, const struct run_options *o, char *error, size_t size)
{
    size_t len = shared->content.region_len;

    shared->psn = (uint32_t) (o->seed * 0x9e3779b1 & 0xffffff);
    shared->chunk = chunk_of(o);
    shared->n_chunks = (o->size + shared->chunk - 1) / shared->chunk;
    shared->n_pieces = shared->n_chunks + (o->pattern == PATTERN_APPEND);
    shared->plan.n_members = 1 + o->n_receivers;
    if (o->scheme != SCHEME_MCAST) {
        relay_plan_make(&shared->plan, o->scheme, o->n_receivers);
    }
    if (!fill_mtu(shared, o, error, size)) {
        return false;
    }
    shared->content.sector = sector_of(shared);
    int status = 0;
    if (o->file) {
        status = content_file_read(o->file, shared->expected, len);
    } else {
        content_generate(&shared->content, shared->expected);
    }
    if (status) {
        return refuse(error, size, "--file %s: %s", o->file, strerror(status));
    }
    bool ok = fill_lives(shared, o, error, size);

    for (unsigned i = 0; ok && i < N_PHASES; i++) {
        ok = !pipe2(shared->over[i], O_CLOEXEC)
             || refuse(error, size, "cannot make a pipe: %s", strerror(errno));
    }
    return ok;
}

void
shared_free(struct shared *shared)
{
    for (unsigned i = 0; i < N_PHASES; i++) {
        for (unsigned end = 0; end < 2; end++) {
            if (shared->over[i][end]) {
                close(shared->over[i][end]);
            }
        }
    }
    munmap(shared, sizeof *shared + shared->content.region_len);
}

struct shared *
shared_new(const struct run_options *o, char *error, size_t size)
{
    struct content content;
    uint64_t n_blocks;

    if (!content_of(o, &content, &n_blocks, error, size)) {
        return NULL;
    }
    struct shared *shared = mmap(NULL, sizeof *shared + content.region_len, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        snprintf(error, size, "cannot map %zu bytes: %s", content.region_len, strerror(errno));
        return NULL;
    }
    shared->content = content;
    shared->n_blocks = n_blocks;
    if (!shared_fill(shared, o, error, size)) {
        shared_free(shared);
        return NULL;
    }
    return shared;
}
