/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which processes are profiled: `--include` and `--exclude`. A selector is KEY=GLOB, the key one of
 *
 *   pid, comm        of the process; comm is its main thread's name
 *   executable       the program's path if the glob has a slash, else its file name
 *   container_id     64 hex digits; a glob as short as `docker ps` shows it needs a * at the end
 *   cgroup           the path of its control group; on cgroup v1, of any hierarchy
 *   namespace, pod, container, label.KEY, annotation.KEY
 *                    of the pod that its container belongs to
 *
 * and the glob, as in fnmatch(3), must match the whole value. A process is profiled if a selector
 * of the include list matches or that list is empty, and no selector of the exclude list matches.
 *
 * What a process is known by is matched here. Pods are known to others, who match their selectors
 * with selection_matches_pod() and tell the sampler the result for each container
 * (agent/sampler/seam/container_choices.h).
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"

struct cgroup_paths;
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
/* What a SELECTION_KEYS message should name. */
#define SELECTION_KEYS                                                                            \
	"pid, comm, executable, container_id, cgroup, namespace, pod, container, annotation.KEY " \
	"or label.KEY"

enum selection_list { SELECTION_INCLUDE, SELECTION_EXCLUDE };

/* Whether a selector is about pods. S may be NULL. */
bool selection_needs_pods(const struct selection *s);
/* Whether a selector is about the paths of control groups. S may be NULL. */
bool selection_needs_paths(const struct selection *s);
/* Whether LIST has no selector. S may be NULL, as in the following. */
bool selection_is_empty(const struct selection *s, enum selection_list list);
/* Whether a selector of LIST that is not about pods matches P. */
bool selection_matches(
	const struct selection *s, enum selection_list list, const struct process *p);
/* Whether LIST has a selector for which it needs to know the process itself, not its group only. */
bool selection_needs_process(const struct selection *s, enum selection_list list);
/* Whether a selector of LIST matches all processes of the control group with PATHS. */
bool selection_matches_cgroup(const struct selection *s, enum selection_list list,
	const char *container_id, const struct cgroup_paths *paths);
/*
 * Whether a selector of LIST matches a pod and its container. VALUE returns what there is under a
 * key, `namespace`, `pod`, `container`, or NAME of `label` or `annotation` (else NULL); NULL or "":
 * nothing.
 */
typedef const char *selection_value_fn(void *context, const char *key, const char *name);
bool selection_matches_pod(const struct selection *s, enum selection_list list,
	selection_value_fn *value, void *context);
/*
 * Whether P, as known at this moment, is profiled, if no selector is about pods: else see
 * choosing.h.
 */
bool selection_wants(const struct selection *s, const struct process *p);
