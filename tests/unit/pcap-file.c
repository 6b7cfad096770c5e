/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads classic pcap files.
 */
#include "tests/unit/pcap-file.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PCAP_MAGIC      0xa1b2c3d4u /* microseconds, this machine's byte order. */
#define FILE_HDR_LEN    24
#define RECORD_HDR_LEN  16
#define CAPTURE_LEN_OFS 8

static uint32_t
load32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

void
pcap_file_open(struct pcap_file *file, const char *path)
{
    FILE *stream = fopen(path, "rb");
    ck_assert_msg(stream, "%s: cannot be opened (tests run in the repository's root)", path);
    ck_assert_int_eq(fseek(stream, 0, SEEK_END), 0);
    file->size = (size_t) ftell(stream);
    rewind(stream);
    file->bytes = malloc(file->size);
    ck_assert_uint_eq(fread(file->bytes, 1, file->size, stream), file->size);
    fclose(stream);

    ck_assert_uint_ge(file->size, FILE_HDR_LEN);
    ck_assert_uint_eq(load32(file->bytes), PCAP_MAGIC);
    file->ofs = FILE_HDR_LEN;
}

void
pcap_file_close(struct pcap_file *file)
{
    free(file->bytes);
}

uint8_t *
pcap_file_next(struct pcap_file *file, uint32_t *len)
{
    if (file->ofs == file->size) {
        return NULL;
    }
    ck_assert_uint_ge(file->size - file->ofs, RECORD_HDR_LEN);
    *len = load32(file->bytes + file->ofs + CAPTURE_LEN_OFS);
    file->ofs += RECORD_HDR_LEN;
    ck_assert_uint_ge(file->size - file->ofs, *len);

    uint8_t *frame = malloc(*len);
    memcpy(frame, file->bytes + file->ofs, *len);
    file->ofs += *len;
    return frame;
}

uint8_t *
pcap_file_frame(const char *path, unsigned i, uint32_t *len)
{
    struct pcap_file file;
    uint8_t *frame;

    pcap_file_open(&file, path);
    while ((frame = pcap_file_next(&file, len)) && i--) {
        free(frame);
    }
    ck_assert_ptr_nonnull(frame);
    pcap_file_close(&file);
    return frame;
}
