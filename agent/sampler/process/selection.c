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

enum selector_key { BY_PID, BY_COMM, BY_EXECUTABLE, BY_CONTAINER_ID, SELECTOR_KEYS };

static const char *const KEYS[SELECTOR_KEYS] = {
	[BY_PID] = "pid",
	[BY_COMM] = "comm",
	[BY_EXECUTABLE] = "executable",
	[BY_CONTAINER_ID] = "container_id",
};

struct selector {
	enum selector_key key;
	const char *glob; /* in the list's text */
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

static int selection_add(struct selectors *list, char *text)
{
	char *glob = strchr(text, '=');

	if (list->count == SELECTION_MAX)
		return -E2BIG;
	if (!glob || !glob[1])
		return -EINVAL;
	*glob++ = '\0';
	for (enum selector_key key = 0; key < SELECTOR_KEYS; key++) {
		if (strcmp(text, KEYS[key]))
			continue;
		list->items[list->count++] = (struct selector){ key, glob };
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
			    : buffer_printf(
				      out, "%s%s=%s", i ? "," : "", KEYS[list->items[i].key], glob);
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
	default:
		return false;
	}
}

static bool any_fits(const struct selectors *list, const struct process *p)
{
	for (size_t i = 0; i < list->count; i++) {
		if (fits(&list->items[i], p))
			return true;
	}
	return false;
}

bool selection_wants(const struct selection *s, const struct process *p)
{
	return (!s->include.count || any_fits(&s->include, p)) && !any_fits(&s->exclude, p);
}
