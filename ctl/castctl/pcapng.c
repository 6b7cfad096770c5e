/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes pcapng files.
 *
 * A block is its type, its length, a body in multiples of four bytes, and its length again.  Numbers are in this
 * machine's byte order: the section header's magic tells a reader which.  Options are a code, a length and a value that
 * is padded, and end with code 0.
 */
#include <config.h>

#include "ctl/castctl/pcapng.h"

#include <string.h>

#include "lib/packet.h"
#include "openvswitch/dynamic-string.h"

#define BLOCK_SECTION     0x0a0d0d0au
#define BLOCK_INTERFACE   1u
#define BLOCK_NAMES       4u
#define BLOCK_FRAME       6u

#define BYTE_ORDER_MAGIC  0x1a2b3c4du
#define LINKTYPE_ETHERNET 1
#define RECORD_IPV6       2

enum {
    OPT_END = 0,
    OPT_SHB_APPLICATION = 4,
    OPT_IF_NAME = 2,
    OPT_IF_DESCRIPTION = 3,
    OPT_IF_TSRESOL = 9,
    OPT_EPB_FLAGS = 2,
};
#define TSRESOL_USEC 6 /* 10^-6 s. */

static void
put_padded(struct ds *body, const void *bytes, size_t len)
{
    static const char zeros[4];

    ds_put_buffer(body, bytes, len);
    ds_put_buffer(body, zeros, (4 - len % 4) % 4);
}

static void
put_16(struct ds *body, uint16_t value)
{
    ds_put_buffer(body, (const char *) &value, sizeof value);
}

static void
put_32(struct ds *body, uint32_t value)
{
    ds_put_buffer(body, (const char *) &value, sizeof value);
}

/* Also a record of names, which has the same form. */
static void
put_option(struct ds *body, uint16_t code, const void *value, size_t len)
{
    put_16(body, code);
    put_16(body, (uint16_t) len);
    put_padded(body, value, len);
}

/* Frees the body. */
static void
write_block(FILE *out, uint32_t type, struct ds *body)
{
    const uint32_t head[2] = {type, (uint32_t) (body->length + 12)};

    fwrite(head, sizeof head, 1, out);
    fwrite(body->string, body->length, 1, out);
    fwrite(&head[1], sizeof head[1], 1, out);
    ds_destroy(body);
}

void
pcapng_section(FILE *out, const char *application)
{
    struct ds body = DS_EMPTY_INITIALIZER;

    put_32(&body, BYTE_ORDER_MAGIC);
    put_16(&body, 1); /* version 1.0. */
    put_16(&body, 0);
    put_32(&body, UINT32_MAX); /* the section's length is not known. */
    put_32(&body, UINT32_MAX);
    put_option(&body, OPT_SHB_APPLICATION, application, strlen(application));
    put_option(&body, OPT_END, NULL, 0);
    write_block(out, BLOCK_SECTION, &body);
}

void
pcapng_port(FILE *out, const char *name, const char *description)
{
    const uint8_t resolution = TSRESOL_USEC;
    struct ds body = DS_EMPTY_INITIALIZER;

    put_16(&body, LINKTYPE_ETHERNET);
    put_16(&body, 0);
    put_32(&body, PACKET_HEADROOM + PACKET_ROOM);
    put_option(&body, OPT_IF_NAME, name, strlen(name));
    put_option(&body, OPT_IF_DESCRIPTION, description, strlen(description));
    put_option(&body, OPT_IF_TSRESOL, &resolution, sizeof resolution);
    put_option(&body, OPT_END, NULL, 0);
    write_block(out, BLOCK_INTERFACE, &body);
}

void
pcapng_names(FILE *out, const struct pcapng_name names[], size_t n)
{
    struct ds body = DS_EMPTY_INITIALIZER;

    for (size_t i = 0; i < n; i++) {
        struct ds record = DS_EMPTY_INITIALIZER;

        ds_put_buffer(&record, (const char *) &names[i].address, sizeof names[i].address);
        ds_put_buffer(&record, names[i].name, strlen(names[i].name) + 1);
        put_option(&body, RECORD_IPV6, record.string, record.length);
        ds_destroy(&record);
    }
    put_option(&body, OPT_END, NULL, 0);
    write_block(out, BLOCK_NAMES, &body);
}

void
pcapng_frame(FILE *out, const struct pcapng_frame *f)
{
    struct ds body = DS_EMPTY_INITIALIZER;
    uint32_t flags = f->direction; /* bits 0 and 1. */

    put_32(&body, f->port);
    put_32(&body, (uint32_t) ((uint64_t) f->usec >> 32));
    put_32(&body, (uint32_t) f->usec);
    put_32(&body, f->len);
    put_32(&body, f->whole_len);
    put_padded(&body, f->bytes, f->len);
    put_option(&body, OPT_EPB_FLAGS, &flags, sizeof flags);
    put_option(&body, OPT_END, NULL, 0);
    write_block(out, BLOCK_FRAME, &body);
}
