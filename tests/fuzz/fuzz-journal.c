/* SPDX-License-Identifier: Apache-2.0
 *
 * castlab's journal.  The input is one, of lab "star".  What is read makes sense, or the error
 * names file and line.  A journal that can be read can be read when it is cut anywhere, and goes on
 * behind the cut.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "testbed/labs/labs.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/parse-check.h"

#define LAB "star"

static char folder[] = "/tmp/fuzz-journal-XXXXXX";

static void
remove_folders(void)
{
    unlink(lab_file(LAB, "journal").text);
    rmdir(lab_folder(LAB).text);
    rmdir(lab_text("%s/lab", folder).text);
    rmdir(folder);
}

static void
make_folders(void)
{
    REQUIRE(mkdtemp(folder));
    setenv("ROCECAST_RUNDIR", folder, 1);
    REQUIRE(!mkdir(lab_text("%s/lab", folder).text, 0700));
    REQUIRE(!mkdir(lab_folder(LAB).text, 0700));
    atexit(remove_folders);
}

static void
write_journal(const uint8_t *data, size_t size)
{
    FILE *stream = fopen(lab_file(LAB, "journal").text, "we");

    REQUIRE(stream && fwrite(data, 1, size, stream) == size);
    REQUIRE(!fclose(stream));
}

/* Is this word in a fact of this kind, at this place? */
static bool
stated(const struct journal_list *list, const char *kind, int field, const char *word)
{
    const struct journal_entry *e = NULL;

    while ((e = journal_next(list, e, '.', kind, NULL))) {
        if (!strcmp(e->fields[field], word)) {
            return true;
        }
    }
    return false;
}

static void
check_object(const struct journal_list *list, size_t i)
{
    const struct journal_entry *e = &list->entries[i];
    bool is_tap = !strcmp(e->kind, "tap"), is_netns = !strcmp(e->kind, "netns");

    if (is_tap) {
        REQUIRE(stated(list, "port", 1, e->fields[0]));
    } else if (is_netns) {
        REQUIRE(!strncmp(e->fields[0], LAB "-", strlen(LAB "-")));
        REQUIRE(stated(list, "node", 0, e->fields[0] + strlen(LAB "-")));
    } else if (!strcmp(e->kind, "rxe")) {
        REQUIRE(!strncmp(e->fields[0], "rxe_", 4) && stated(list, "node", 0, e->fields[0] + 4));
    } else if (!strcmp(e->kind, "process")) {
        REQUIRE(lab_process_id(e).pid > 0);
    } else if (!strcmp(e->kind, "rule")) {
        REQUIRE(strtoul(e->fields[0], NULL, 10) == HOST_RULE_PREF);
    } else if (!strcmp(e->kind, "device-rule")) {
        REQUIRE(strtoul(e->fields[0], NULL, 10) == DEVICE_RULE_PREF);
        REQUIRE(stated(list, "port", 1, e->fields[1]));
    } else {
        REQUIRE(!strcmp(e->kind, "local-rule"));
        REQUIRE(strtoul(e->fields[0], NULL, 10) == LOCAL_RULE_PREF);
    }
    if (is_tap || is_netns) {
        REQUIRE(e->id ? strtoull(e->id, NULL, 10) > 0 : e->op == '-' || i + 1 == list->n);
    }
}

/* Returns how many entries there are; SIZE_MAX: the journal cannot be read. */
static size_t
read_journal(void)
{
    const struct lab_text path = lab_file(LAB, "journal");
    struct journal_list list;
    char *error = lab_read(LAB, &list);
    size_t n = error ? SIZE_MAX : list.n;

    if (error) {
        unsigned int line = 0;

        REQUIRE(!list.n && !list.entries);
        REQUIRE(!strncmp(error, path.text, strlen(path.text)));
        REQUIRE(sscanf(error + strlen(path.text), ":%u: ", &line) == 1 && line > 0);
        free(error);
        return n;
    }
    for (size_t i = 0; i < list.n; i++) {
        if (list.entries[i].op != '.') {
            check_object(&list, i);
        }
    }
    lab_former_boot(&list);
    journal_list_uninit(&list);
    return n;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct journal journal;

    if (folder[strlen(folder) - 1] == 'X') {
        make_folders();
    }
    write_journal(data, size);
    if (read_journal() == SIZE_MAX) {
        return 0;
    }
    size_t cut = size ? (data[0] * 251u + data[size / 2] * 13u + data[size - 1]) % size : 0;
    write_journal(data, cut);
    size_t n = read_journal();
    REQUIRE(n != SIZE_MAX);
    REQUIRE(!journal_open(&journal, lab_file(LAB, "journal").text));
    char *error = journal_fact(&journal, "up");
    REQUIRE(!error);
    journal_close(&journal);
    size_t more = read_journal();
    /* Not behind an object that waits for its identity: nobody goes on there. */
    REQUIRE(more == n + 1 || more == SIZE_MAX);
    return 0;
}
