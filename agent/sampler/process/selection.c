/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/process/selection.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/process/processes.h"
#include "base/cleanup.h"
#include "base/items.h"

enum selector_key {
	BY_PID,
	BY_COMM,
	BY_EXECUTABLE,
	BY_CONTAINER_ID,
	BY_CGROUP,
	BY_NAMESPACE,
	BY_POD,
	BY_CONTAINER,
	BY_ANNOTATION,
	BY_LABEL,
	SELECTOR_KEYS,
};

/* With a dot at the end: a name follows. */
static const char *const KEYS[SELECTOR_KEYS] = {
	[BY_PID] = "pid",
	[BY_COMM] = "comm",
	[BY_EXECUTABLE] = "executable",
	[BY_CONTAINER_ID] = "container_id",
	[BY_CGROUP] = "cgroup",
	[BY_NAMESPACE] = "namespace",
	[BY_POD] = "pod",
	[BY_CONTAINER] = "container",
	[BY_ANNOTATION] = "annotation.",
	[BY_LABEL] = "label.",
};

struct selector {
	enum selector_key key;
	const char *name; /* of a label or annotation; else "" */
	const char *glob; /* in the list's text, as NAME */
};

struct selectors {
	char *text;
	struct selector items[SELECTION_MAX];
	size_t count;
};

struct selection {
	struct selectors include, exclude;
};

/* ---- reading -------------------------------------------------------------------------------- */

/* What follows KEY in TEXT: a name or, as most keys have none, ""; NULL if TEXT is not of KEY. */
static const char *selection_name_of(const char *text, const char *key)
{
	size_t length = strlen(key);

	if (strncmp(text, key, length) != 0)
		return NULL;
	return (key[length - 1] == '.') == (text[length] != 0) ? text + length : NULL;
}

static int selection_add(struct selectors *list, char *text)
{
	char *glob = strchr(text, '=');

	if (list->count == SELECTION_MAX)
		return -E2BIG;
	if (!glob || !glob[1])
		return -EINVAL;
	*glob++ = '\0';
	for (enum selector_key key = 0; key < SELECTOR_KEYS; key++) {
		const char *name = selection_name_of(text, KEYS[key]);

		if (!name)
			continue;
		list->items[list->count++] = (struct selector){ key, name, glob };
		return 0;
	}
	return -EINVAL;
}

static int selection_read_list(const char *text, struct selectors *list)
{
	char *rest, *item;
	int err = 0;

	if (!text || !*text)
		return 0;
	list->text = strdup(text);
	if (!list->text)
		return -ENOMEM;
	rest = list->text;
	while (!err && (item = items_next(&rest, ",")))
		err = selection_add(list, item);
	return err;
}

int selection_create(const char *include, const char *exclude, struct selection **ret_selection,
	bool *ret_second)
{
	struct selection *s = calloc(1, sizeof(*s));
	bool second = false;
	int err;

	if (!s)
		return -ENOMEM;
	err = selection_read_list(include, &s->include);
	if (!err) {
		second = true;
		err = selection_read_list(exclude, &s->exclude);
	}
	if (err || (!s->include.count && !s->exclude.count)) {
		selection_destroy(s);
		s = NULL;
	}
	if (err) {
		*ret_second = second;
		return err;
	}
	*ret_selection = s;
	return 0;
}

void selection_destroy(struct selection *s)
{
	if (!s)
		return;
	free(s->include.text);
	free(s->exclude.text);
	free(s);
}

int selection_write(const struct selection *s, bool exclude, struct buffer *out)
{
	const struct selectors *list = !s ? NULL : exclude ? &s->exclude : &s->include;
	int err = 0;

	for (size_t i = 0; list && i < list->count && !err; i++) {
		autofree char *glob = items_escape(list->items[i].glob, ",");

		err = !glob ? -ENOMEM
			    : buffer_printf(out, "%s%s%s=%s", i ? "," : "",
				      KEYS[list->items[i].key], list->items[i].name, glob);
	}
	return err;
}

/* ---- asking --------------------------------------------------------------------------------- */

static bool fits_executable(const char *glob, const struct process *p)
{
	const char *path = process_program_path(p), *slash = strrchr(path, '/');

	if (!*path)
		return false;
	return !fnmatch(glob, slash && !strchr(glob, '/') ? slash + 1 : path, 0);
}

static bool fits(const struct selector *selector, const struct process *p)
{
	char number[16];

	switch (selector->key) {
	case BY_PID:
		snprintf(number, sizeof(number), "%u", p->pid);
		return !fnmatch(selector->glob, number, 0);
	case BY_COMM:
		return !fnmatch(selector->glob, p->comm, 0);
	case BY_EXECUTABLE:
		return fits_executable(selector->glob, p);
	case BY_CONTAINER_ID:
		return !fnmatch(selector->glob, p->container_id, 0);
	case BY_CGROUP:
		return cgroup_paths_match(p->cgroups, selector->glob);
	default:
		return false;
	}
}

static const struct selectors *selection_list(const struct selection *s, enum selection_list list)
{
	static const struct selectors none;

	return !s ? &none : list == SELECTION_EXCLUDE ? &s->exclude : &s->include;
}

bool selection_is_empty(const struct selection *s, enum selection_list list)
{
	return !selection_list(s, list)->count;
}

static bool selection_has(const struct selection *s, enum selection_list list,
	enum selector_key first, enum selector_key last)
{
	const struct selectors *of = selection_list(s, list);

	for (size_t i = 0; i < of->count; i++) {
		if (of->items[i].key >= first && of->items[i].key <= last)
			return true;
	}
	return false;
}

bool selection_needs_pods(const struct selection *s)
{
	return selection_has(s, SELECTION_INCLUDE, BY_NAMESPACE, BY_LABEL) ||
	       selection_has(s, SELECTION_EXCLUDE, BY_NAMESPACE, BY_LABEL);
}

bool selection_needs_paths(const struct selection *s)
{
	return selection_has(s, SELECTION_INCLUDE, BY_CGROUP, BY_CGROUP) ||
	       selection_has(s, SELECTION_EXCLUDE, BY_CGROUP, BY_CGROUP);
}

bool selection_needs_process(const struct selection *s, enum selection_list list)
{
	return selection_has(s, list, BY_PID, BY_EXECUTABLE);
}

bool selection_matches(const struct selection *s, enum selection_list list, const struct process *p)
{
	const struct selectors *of = selection_list(s, list);

	for (size_t i = 0; i < of->count; i++) {
		if (fits(&of->items[i], p))
			return true;
	}
	return false;
}

bool selection_matches_cgroup(const struct selection *s, enum selection_list list,
	const char *container_id, const struct cgroup_paths *paths)
{
	const struct selectors *of = selection_list(s, list);

	for (size_t i = 0; i < of->count; i++) {
		const struct selector *selector = &of->items[i];

		if (selector->key == BY_CONTAINER_ID && !fnmatch(selector->glob, container_id, 0))
			return true;
		if (selector->key == BY_CGROUP && cgroup_paths_match(paths, selector->glob))
			return true;
	}
	return false;
}

static const char *selection_value_of(
	const struct selector *selector, selection_value_fn *value, void *context)
{
	switch (selector->key) {
	case BY_ANNOTATION:
		return value(context, "annotation", selector->name);
	case BY_LABEL:
		return value(context, "label", selector->name);
	case BY_NAMESPACE:
	case BY_POD:
	case BY_CONTAINER:
		return value(context, KEYS[selector->key], NULL);
	default:
		return NULL;
	}
}

bool selection_matches_pod(const struct selection *s, enum selection_list list,
	selection_value_fn *value, void *context)
{
	const struct selectors *of = selection_list(s, list);

	for (size_t i = 0; i < of->count; i++) {
		const char *text = selection_value_of(&of->items[i], value, context);

		if (text && *text && !fnmatch(of->items[i].glob, text, 0))
			return true;
	}
	return false;
}

bool selection_wants(const struct selection *s, const struct process *p)
{
	return (selection_is_empty(s, SELECTION_INCLUDE) ||
		       selection_matches(s, SELECTION_INCLUDE, p)) &&
	       !selection_matches(s, SELECTION_EXCLUDE, p);
}
