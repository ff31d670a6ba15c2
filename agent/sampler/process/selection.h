/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which processes are profiled: `--include` and `--exclude`. A selector is KEY=GLOB, the key one of
 *
 *   pid, comm        of the process; comm is its main thread's name
 *   executable       the program's path if the glob has a slash, else its file name
 *   container_id     64 hex digits; a glob as short as `docker ps` shows it needs a * at the end
 *
 * and the glob, as in fnmatch(3), must match the whole value. A process is profiled if a selector
 * of the include list matches or that list is empty, and no selector of the exclude list matches.
 */
#include <stdbool.h>

#include "base/buffer.h"

struct process;
struct selection;

enum { SELECTION_MAX = 64 }; /* selectors per list */

/*
 * Parses two comma-separated lists; NULL is an empty list. *RET_SELECTION is NULL if both are
 * empty. Returns -EINVAL if a selector is malformed (*RET_SECOND: it is in EXCLUDE), or -E2BIG.
 */
int selection_create(const char *include, const char *exclude, struct selection **ret_selection,
	bool *ret_second);
void selection_destroy(struct selection *s);
/* Appends one of the lists, as selection_create() takes it, to OUT; nothing for NULL. */
int selection_write(const struct selection *s, bool exclude, struct buffer *out);
/* Whether P, as known at this moment, is profiled. */
bool selection_wants(const struct selection *s, const struct process *p);
