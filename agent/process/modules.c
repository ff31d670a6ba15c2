/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/process/modules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/map.h"

struct modules {
	struct module **items; /* by number - 1; each stays where it is */
	size_t count, capacity;
	size_t limit;
	struct map numbers; /* by hash of the key; a taken slot sends on to the next hash */
};

/* How many modules may share one hash before a new one is refused. */
enum { MAX_PROBES = 64 };

int modules_create(size_t limit, struct modules **ret_modules)
{
	struct modules *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->limit = limit;
	map_init(&m->numbers, limit);
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
	if (!m)
		return;
	for (size_t i = 0; i < m->count; i++)
		module_destroy(m->items[i]);
	free(m->items);
	map_deinit(&m->numbers);
	free(m);
}

static uint64_t key_hash(enum module_kind kind, const struct module_id *id, const char *path)
{
	if (kind == MODULE_FILE)
		return module_id_hash(id);
	if (kind == MODULE_SPECIAL)
		return hash_bytes(path, strlen(path));
	return kind; /* there is one */
}

/* What has no file is told apart by its name at most. */
static bool is_same(const struct module *module, enum module_kind kind, const struct module_id *id,
	const char *path)
{
	if (module->kind != kind)
		return false;
	if (kind == MODULE_FILE)
		return module_id_equal(&module->id, id);
	return kind != MODULE_SPECIAL || !strcmp(module->path, path);
}

static int add(struct modules *m, uint64_t key, const struct module *wanted, const char *path,
	struct module **ret_module)
{
	autocall(auto_module_destroy) struct module *module = calloc(1, sizeof(*module));
	int err;

	if (!module)
		return -ENOMEM;
	*module = *wanted;
	module->path = strdup(path);
	if (!module->path)
		return -ENOMEM;
	err = array_reserve(m->items, m->capacity, m->count + 1, m->limit);
	if (err)
		return err;
	module->number = (uint32_t)(m->count + 1);
	err = map_set(&m->numbers, key, module->number);
	if (err)
		return err;
	*ret_module = module;
	m->items[m->count++] = take(module);
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
		struct module *module;
		uint64_t number;

		if (!map_get(&m->numbers, key, &number))
			return add(m, key, &wanted, path, ret_module);
		module = modules_find(m, (uint32_t)number);
		if (is_same(module, kind, id, path)) {
			*ret_module = module;
			return 0;
		}
	}
	return -E2BIG;
}

struct module *modules_find(const struct modules *m, uint32_t number)
{
	return number >= 1 && number <= m->count ? m->items[number - 1] : NULL;
}

size_t modules_count(const struct modules *m)
{
	return m->count;
}
