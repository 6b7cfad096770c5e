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
    SRunner *runner = srunner_create(NULL);

#define SUITE(NAME) srunner_add_suite(runner, NAME##_suite());
    SUITES(SUITE)
#undef SUITE

    srunner_run_all(runner, CK_NORMAL);
    int n_failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
