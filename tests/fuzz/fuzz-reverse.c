/* SPDX-License-Identifier: Apache-2.0
 *
 * The reverse path's machine against its brute-force model.  The input's first
 * byte says what is to begin with; all choices of the event string come from the rest.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/unit/reverse-compare.h"

#define MAX_EVENTS      200
#define BYTES_PER_EVENT 6 /* about. */

static uint32_t
choose(void *in, uint32_t limit)
{
    return fuzz_below(in, limit);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size};
    uint8_t start = fuzz_byte(&in);
    size_t n = size / BYTES_PER_EVENT;

    reverse_compare(&(struct reverse_string){
        .title = "the fuzzer's input",
        .choose = choose,
        .aux = &in,
        .n_events = n < MAX_EVENTS ? (unsigned) n : MAX_EVENTS,
        .many = start % 64 == 1,
        .policy = start % 3 == 0,
    });
    return 0;
}
