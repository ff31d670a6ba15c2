/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/process/modules.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/intern.h"
#include "base/map.h"

struct modules {
	uint32_t last_number;
	struct map by_number;
	struct map by_key; /* by hash of the identity, with linear probing */
};

/* How many modules may share one hash before a new one is refused. */
enum { MAX_PROBES = 64 };

int modules_create(size_t limit, struct modules **ret_modules)
{
	struct modules *m = calloc(1, sizeof(*m));

	assert(limit <= MODULE_NUMBER_MAX);
	if (!m)
		return -ENOMEM;
	map_init(&m->by_number, limit);
	map_init(&m->by_key, limit);
	*ret_modules = m;
	return 0;
}

static void module_destroy(struct module *module)
{
	if (module)
		free(module->path);
	free(module);
}

DEFINE_AUTO(module);

void modules_destroy(struct modules *m)
{
	struct module *module;
	size_t i = 0;

	if (!m)
		return;
	while ((module = modules_next(m, &i)))
		module_destroy(module);
	map_deinit(&m->by_number);
	map_deinit(&m->by_key);
	free(m);
}

static uint64_t key_hash(enum module_kind kind, const struct module_id *id, const char *path)
{
	if (kind == MODULE_FILE)
		return module_id_hash(id);
	if (kind == MODULE_SPECIAL)
		return hash_bytes(path, strlen(path));
	return kind; /* there is only one */
}

/* Modules without a file differ by kind and, if special, by name. */
static bool modules_is_same(const struct module *module, enum module_kind kind,
	const struct module_id *id, const char *path)
{
	if (module->kind != kind)
		return false;
	if (kind == MODULE_FILE)
		return module_id_equal(&module->id, id);
	return kind != MODULE_SPECIAL || !strcmp(module->path, path);
}

/* Wraps after sixteen million modules and skips numbers in use. */
static uint32_t modules_next_number(const struct modules *m)
{
	uint32_t number = m->last_number;

	do {
		number = number % MODULE_NUMBER_MAX + 1;
	} while (modules_find(m, number));
	return number;
}

static int modules_add(struct modules *m, uint64_t key, const struct module *wanted,
	const char *path, struct module **ret_module)
{
	autocall(auto_module_destroy) struct module *module = calloc(1, sizeof(*module));
	int err;

	if (!module)
		return -ENOMEM;
	*module = *wanted;
	module->number = modules_next_number(m);
	module->path = strdup(path);
	if (!module->path)
		return -ENOMEM;
	err = map_set_pointer(&m->by_key, key, module);
	if (err)
		return err;
	err = map_set_pointer(&m->by_number, module->number, module);
	if (err) {
		map_remove(&m->by_key, key);
		return err;
	}
	m->last_number = module->number;
	*ret_module = take(module);
	return 0;
}

int modules_get(struct modules *m, enum module_kind kind, const struct module_id *id,
	const char *path, struct module **ret_module)
{
	uint64_t first = key_hash(kind, id, path);
	struct module wanted = { .kind = kind };

	if (kind == MODULE_FILE)
		wanted.id = *id;
	for (uint64_t key = first; key - first < MAX_PROBES; key++) {
		struct module *module = map_get_pointer(&m->by_key, key);

		if (!module)
			return modules_add(m, key, &wanted, path, ret_module);
		if (modules_is_same(module, kind, id, path)) {
			*ret_module = module;
			return 0;
		}
	}
	return -E2BIG;
}

struct module *modules_find(const struct modules *m, uint32_t number)
{
	return map_get_pointer(&m->by_number, number);
}

size_t modules_count(const struct modules *m)
{
	return m->by_number.count;
}

struct module *modules_next(const struct modules *m, size_t *iterator)
{
	uint64_t number, pointer;

	if (!map_next(&m->by_number, iterator, &number, &pointer))
		return NULL;
	return (struct module *)(uintptr_t)pointer;
}

/* ---- forgetting ----------------------------------------------------------------------------- */

static uint64_t home_of(const struct module *module)
{
	return key_hash(module->kind, &module->id, module->path);
}

/*
 * Frees MODULE's slot. A later module whose probing went over this slot moves into it, or it would
 * not be found again. That needs no memory, as there was one more before.
 */
static void unlink_key(struct modules *m, const struct module *module)
{
	uint64_t hole = home_of(module), key;
	struct module *behind;

	while (map_get_pointer(&m->by_key, hole) != module)
		hole++;
	map_remove(&m->by_key, hole);
	for (key = hole + 1; (behind = map_get_pointer(&m->by_key, key)); key++) {
		if (key - home_of(behind) < key - hole)
			continue;
		map_remove(&m->by_key, key);
		(void)map_set_pointer(&m->by_key, hole, behind);
		hole = key;
	}
}

size_t modules_sweep(struct modules *m, modules_unused_fn *unused, void *context)
{
	struct module *module, *list = NULL;
	size_t i = 0, count = 0;

	while ((module = modules_next(m, &i))) {
		if (!unused(context, module))
			continue;
		module->next_unused = list;
		list = module;
	}
	for (; list; count++) {
		module = list;
		list = module->next_unused;
		unlink_key(m, module);
		map_remove(&m->by_number, module->number);
		module_destroy(module);
	}
	map_trim(&m->by_key);
	map_trim(&m->by_number);
	return count;
}
