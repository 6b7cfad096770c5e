/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs all unit tests; libcheck's CK_RUN_SUITE and CK_FORK work as usual.  To
 * be started in the repository's root, since tests read tests/vectors.
 */
#include <stdlib.h>

#include "tests/unit/suites.h"

int
main(void)
{
    /* Against a test that hangs; how fast the machine is must not matter. */
    setenv("CK_DEFAULT_TIMEOUT", "900", 0);
    SRunner *runner = srunner_create(NULL);

#define SUITE(NAME) srunner_add_suite(runner, NAME##_suite());
    SUITES(SUITE)
#undef SUITE

    srunner_run_all(runner, CK_NORMAL);
    int n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
