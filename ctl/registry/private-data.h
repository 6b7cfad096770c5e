/* SPDX-License-Identifier: Apache-2.0
 *
 * Where in the private data of an RDMA-CM answer a program has its memory region: a layout, as
 * operators write it, and the region that an answer has by it.
 *
 *     va:be64@0,rkey:be32@8,len:be64@12
 *
 * Fields are va, rkey and len, each once, in any order.  A field is FIELD:TYPE@BYTE, with a type of
 * be16, be32, be64, le16, le32 or le64, or FIELD:NUMBER for what is always the same.
 */
#ifndef CTL_REGISTRY_PRIVATE_DATA_H
#define CTL_REGISTRY_PRIVATE_DATA_H 1

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What an empty text stands for. */
#define PRIVATE_DATA_DEFAULT "va:be64@0,rkey:be32@8,len:be64@12"

enum private_data_field {
    PRIVATE_DATA_VA,
    PRIVATE_DATA_RKEY,
    PRIVATE_DATA_LEN,
    PRIVATE_DATA_N_FIELDS
};

/* Where one field is. */
struct private_data_place {
    uint8_t size; /* in bytes; 0: it is nowhere, but always 'constant'. */
    uint8_t ofs;
    bool little_endian;
    uint64_t constant;
};

struct private_data_layout {
    struct private_data_place places[PRIVATE_DATA_N_FIELDS];
};

/* False: '*errorp' is a malloc'd sentence that names what is wrong in the text. */
bool private_data_parse(const char *text, struct private_data_layout *, char **errorp);

/* The region that an answer with this private data has: at least a byte, and no byte of it beyond
 * the last address.  False: '*errorp' is a malloc'd sentence. */
bool private_data_extract(const struct private_data_layout *, const uint8_t *data, size_t data_len,
                          uint64_t *va, uint32_t *rkey, uint64_t *len, char **errorp);

#endif /* ctl/registry/private-data.h */
