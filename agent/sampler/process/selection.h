/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which processes are profiled: `--include` and `--exclude`. A selector is KEY=GLOB, the key one of
 *
 *   pid, comm        of the process; comm is its main thread's name
 *   executable       the program's path where the glob has a slash, else its file name
 *   container_id     64 hex digits; a glob as short as `docker ps` shows it needs a * at the end
 *
 * and the glob as in fnmatch(3), whole. A process is profiled when a selector of the first list
 * fits, or that list is empty, and none of the second does.
 */
#include <stdbool.h>

#include "agent/sampler/process/processes.h"

struct selection;

enum { SELECTION_MAX = 64 }; /* selectors of a list */

/*
 * Lists are joined by commas; NULL is an empty one. *RET_SELECTION is NULL when both are. -EINVAL:
 * a selector makes no sense, *RET_SECOND says in which list; -E2BIG.
 */
int selection_create(const char *include, const char *exclude, struct selection **ret_selection,
	bool *ret_second);
void selection_destroy(struct selection *s);
/* As P is known at this moment. */
bool selection_wants(const struct selection *s, const struct process *p);
