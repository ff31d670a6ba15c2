/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How the helper's child opens files: as mere paths (O_PATH), which is all that the parent gets,
 * because whoever closes a file that is open for reading may have to wait for its server. The child
 * reopens a file for each question that reads it, and closes it again before it answers, so that
 * this wait counts as the question's own.
 */
#include "base/foreign.h"

/*
 * Finds the file that foreign_open() would open; not for FOREIGN_TEXT. Except for mapped files,
 * which are read by the next question anyway, it is opened and closed once, so that the errors are
 * those of opening it. Returns -ESTALE if it is not regular.
 */
int file_open_path(const struct foreign_path *path, int *ret_fd);
/* Like file_open_path() for FOREIGN_MAPPED. The kernel looks NAME up among the process's mappings.
 */
int file_open_mapped(int dir_fd, const char *name, int *ret_fd);
/*
 * Opens FD for reading if it is a mere path; *RET_FD is to be closed then, and -1 if it is not.
 * Returns the descriptor to read from.
 */
int file_open_contents(int fd, int *ret_fd);
