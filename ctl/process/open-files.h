/* SPDX-License-Identifier: Apache-2.0
 *
 * How many files a process may have open.
 */
#ifndef CTL_PROCESS_OPEN_FILES_H
#define CTL_PROCESS_OPEN_FILES_H 1

/* As many as the process may allow itself. */
void open_files_allow(void);

#endif /* ctl/process/open-files.h */
