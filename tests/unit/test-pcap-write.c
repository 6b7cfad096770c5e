/* SPDX-License-Identifier: Apache-2.0
 *
 * Capture files: who may read them, and that no other file is written to.
 */
#include "lib/pcap-write.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/suites.h"
#include "util.h"

static char folder[] = "/tmp/pcap-write-XXXXXX";
static char *file, *target;

static void
setup(void)
{
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    file = xasprintf("%s/capture", folder);
    target = xasprintf("%s/target", folder);
    umask(0);
}

static void
teardown(void)
{
    unlink(file);
    unlink(target);
    rmdir(folder);
    free(file);
    free(target);
}

static void
make_target(mode_t mode)
{
    FILE *stream = fopen(target, "we");

    ck_assert(stream && fputs("precious", stream) >= 0 && !fclose(stream));
    ck_assert_int_eq(chmod(target, mode), 0);
}

static void
check_capture(const char *path, bool replace)
{
    char *why = NULL;
    struct stat st;
    struct pcap_writer *w = pcap_writer_open(path, replace, &why);

    ck_assert_msg(w != NULL, "%s", why);
    pcap_writer_close(w);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode, S_IFREG | 0600);
    ck_assert_int_eq(st.st_size, 24);
}

START_TEST(only_its_user_reads_it)
    {
        check_capture(file, false);
        make_target(0666);
        check_capture(target, true);
    }
END_TEST

/* Whether the link leads anywhere or not. */
START_TEST(no_link_is_followed)
    {
        const char *to[] = {target, "nowhere"};
        struct stat st;
        char *why = NULL;

        make_target(0644);
        ck_assert_int_eq(symlink(to[_i / 2], file), 0);
        ck_assert_ptr_null(pcap_writer_open(file, _i % 2, &why));
        ck_assert_msg(strstr(why, _i % 2 ? "/capture: cannot be written (a symbolic link)"
                                         : "/capture: cannot be written (exists already)"),
                      "%s", why);
        free(why);
        ck_assert_int_eq(stat(target, &st), 0);
        ck_assert_uint_eq(st.st_mode, S_IFREG | 0644);
        ck_assert_int_eq(st.st_size, (off_t) strlen("precious"));
    }
END_TEST

Suite *
pcap_write_suite(void)
{
    Suite *suite = suite_create("pcap_write");
    TCase *tcase = tcase_create("pcap_write");

    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, only_its_user_reads_it);
    tcase_add_loop_test(tcase, no_link_is_followed, 0, 4);
    suite_add_tcase(suite, tcase);
    return suite;
}
