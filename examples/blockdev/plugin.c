/* SPDX-License-Identifier: Apache-2.0
 *
 * A plugin of nbdkit: a disk that is kept by replicas, to which it is written once.
 *
 *     nbdkit nbdkit-rocecast-plugin.so group=G host=H replicas=R1,R2,... size=N [wait=SECONDS]
 *         [answer=SECONDS]
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include "disk.h"
#include "protocol.h"

#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL

static struct disk_options options = {.wait_msec = 60000, .answer_msec = 30000};
static char handle;

static int
set_seconds(const char *key, const char *value, int *msec)
{
    unsigned seconds;

    if (nbdkit_parse_unsigned(key, value, &seconds)) {
        return -1;
    }
    if (seconds < 1 || seconds > 3600) {
        nbdkit_error("%s=%s: must be 1 to 3600 seconds", key, value);
        return -1;
    }
    *msec = (int) seconds * 1000;
    return 0;
}

static int
config(const char *key, const char *value)
{
    if (!strcmp(key, "group")) {
        options.group = value;
    } else if (!strcmp(key, "host")) {
        options.host = value;
    } else if (!strcmp(key, "replicas")) {
        options.replicas = value;
    } else if (!strcmp(key, "size")) {
        int64_t size = nbdkit_parse_size(value);

        if (size < 0) {
            return -1;
        }
        options.size = (uint64_t) size;
    } else if (!strcmp(key, "wait")) {
        return set_seconds(key, value, &options.wait_msec);
    } else if (!strcmp(key, "answer")) {
        return set_seconds(key, value, &options.answer_msec);
    } else {
        nbdkit_error("%s: must be group, host, replicas, size, wait or answer", key);
        return -1;
    }
    return 0;
}

static int
config_complete(void)
{
    if (!options.group || !options.host || !options.replicas || !options.size) {
        nbdkit_error("group, host, replicas and size are needed");
        return -1;
    }
    if (options.size % BLOCK_SIZE) {
        nbdkit_error("size: must be a multiple of %u", BLOCK_SIZE);
        return -1;
    }
    return 0;
}

/* Not earlier: the library's thread would not be there in the process that serves. */
static int
after_fork(void)
{
    if (!disk_open(&options)) {
        nbdkit_error("%s", disk_error());
        return -1;
    }
    return 0;
}

static void *
open_disk(int readonly)
{
    (void) readonly;
    return &handle;
}

static int64_t
get_size(void *h)
{
    (void) h;
    return (int64_t) options.size;
}

static int
block_size(void *h, uint32_t *minimum, uint32_t *preferred, uint32_t *maximum)
{
    (void) h;
    *minimum = BLOCK_SIZE;
    *preferred = SLOT_DATA;
    *maximum = 32 * 1024 * 1024;
    return 0;
}

static int
yes(void *h)
{
    (void) h;
    return 1;
}

static int
fua(void *h)
{
    (void) h;
    return NBDKIT_FUA_NATIVE; /* each write is durable when it is done. */
}

/* 0, or -1 with the error set. */
static int
check(uint32_t count, uint64_t offset)
{
    if (count % BLOCK_SIZE || offset % BLOCK_SIZE) {
        nbdkit_error("%u bytes at %llu: must be multiples of %u (nbd-client -b %u)", count,
                     (unsigned long long) offset, BLOCK_SIZE, BLOCK_SIZE);
        nbdkit_set_error(EINVAL);
        return -1;
    }
    return 0;
}

static int
result(int error)
{
    if (error) {
        nbdkit_error("%s", disk_error());
        nbdkit_set_error(error);
        return -1;
    }
    return 0;
}

static int
pread_disk(void *h, void *data, uint32_t count, uint64_t offset, uint32_t flags)
{
    (void) h;
    (void) flags;
    return check(count, offset) ? -1 : result(disk_read(data, count, offset));
}

static int
pwrite_disk(void *h, const void *data, uint32_t count, uint64_t offset, uint32_t flags)
{
    (void) h;
    (void) flags;
    return check(count, offset) ? -1 : result(disk_write(data, count, offset));
}

/* What was completed before is durable. */
static int
flush(void *h, uint32_t flags)
{
    (void) h;
    (void) flags;
    return 0;
}

static struct nbdkit_plugin plugin = {
    .name = "rocecast",
    .longname = "disk kept by the replicas of a rocecast group",
    .config = config,
    .config_complete = config_complete,
    .config_help =
        "group=G            group of the replicas, with policy prune\n"
        "host=H             this host, the group's source\n"
        "replicas=R1,R2,... hosts of all replicas\n"
        "size=N             size of the disk\n"
        "wait=SECONDS       for all replicas to be there (default: 60)\n"
        "answer=SECONDS     a replica that owes an answer for longer is lost (default: 30)",
    .after_fork = after_fork,
    .cleanup = disk_close,
    .open = open_disk,
    .get_size = get_size,
    .block_size = block_size,
    .can_flush = yes,
    .can_fua = fua,
    .can_multi_conn = yes,
    .pread = pread_disk,
    .pwrite = pwrite_disk,
    .flush = flush,
};

NBDKIT_REGISTER_PLUGIN(plugin)
