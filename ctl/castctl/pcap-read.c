/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads pcap files.
 */
#include <config.h>

#include "ctl/castctl/pcap-read.h"

#include <errno.h>

#include "ctl/castctl/castctl.h"
#include "util.h"

#define PCAP_USEC     0xa1b2c3d4u
#define PCAP_NSEC     0xa1b23c4du
#define PCAP_ETHERNET 1

static uint32_t
pcap_number(const struct pcap_reader *r, uint32_t number)
{
    return r->swapped ? __builtin_bswap32(number) : number;
}

void
pcap_reader_open(struct pcap_reader *r, const char *name, const char *command)
{
    uint32_t header[6]; /* magic, version, two that nobody uses, longest frame, link type. */

    *r = (struct pcap_reader){.name = name, .command = command, .stream = fopen(name, "rb")};
    if (!r->stream) {
        ctl_fail(CTL_REFUSED, "%s: %s: %s", command, name, ovs_strerror(errno));
    }
    if (fread(header, sizeof header, 1, r->stream) != 1) {
        header[0] = 0;
    }
    r->swapped =
        header[0] == __builtin_bswap32(PCAP_USEC) || header[0] == __builtin_bswap32(PCAP_NSEC);
    uint32_t magic = pcap_number(r, header[0]);
    r->per_usec = magic == PCAP_NSEC ? 1000 : 1;
    if ((magic != PCAP_USEC && magic != PCAP_NSEC) || pcap_number(r, header[5]) != PCAP_ETHERNET) {
        ctl_fail(CTL_REFUSED, "%s: %s: no pcap file of Ethernet frames", command, name);
    }
}

bool
pcap_reader_next(struct pcap_reader *r)
{
    uint32_t header[4]; /* seconds, their fraction, bytes in the file, bytes. */
    long at = ftell(r->stream);

    if (fread(header, sizeof header, 1, r->stream) == 1) {
        r->usec =
            pcap_number(r, header[0]) * INT64_C(1000000) + pcap_number(r, header[1]) / r->per_usec;
        r->len = pcap_number(r, header[2]);
        r->whole_len = pcap_number(r, header[3]);
        if (r->len > sizeof r->frame) {
            ctl_fail(CTL_REFUSED, "%s: %s: a frame of %" PRIu32 " bytes: the file is broken",
                     r->command, r->name, r->len);
        }
        if (fread(r->frame, 1, r->len, r->stream) == r->len) {
            return true;
        }
    }
    clearerr(r->stream);
    fseek(r->stream, at, SEEK_SET);
    return false;
}

void
pcap_reader_close(struct pcap_reader *r)
{
    fclose(r->stream);
    r->stream = NULL;
}
