/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds a mapping's module by its name. The names are the kernel's: a path, `[…]` for its own
 * areas, nothing (or `//anon` in side-band records) for memory without a file. Memory that only
 * looks like a file (memfd, SYSV segments, /dev/zero) counts as JIT code, unless it is an ELF file
 * with a build ID or a program that was executed from there.
 */
#include <errno.h>
#include <string.h>

#include "agent/sampler/process/table.h"
#include "base/cleanup.h"
#include "base/failure.h"

static bool module_kind_begins(const char *text, const char *beginning)
{
	return !strncmp(text, beginning, strlen(beginning));
}

static bool begins_any(const char *text, const char *const *beginnings, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (module_kind_begins(text, beginnings[i]))
			return true;
	}
	return false;
}

/* Whether PATH begins as file systems name memory; user space chooses at most what follows. */
static bool is_memory_file(const char *path)
{
	static const char *const names[] = { "/memfd:", "/SYSV", "/dev/", "/anon_hugepage",
		"/[aio]", "/dmabuf" };

	return begins_any(path, names, ARRAY_SIZE(names)) && !module_kind_begins(path, "/dev/shm/");
}

static bool is_plain_memory(const char *path)
{
	static const char *const names[] = { "[heap]", "[stack", "[anon" };

	/* Neither a path nor a kernel area: `anon_inode:…`, `socket:…`. */
	if (path[0] != '/' && path[0] != '[' && path[0] != '(')
		return true;
	return module_kind_begins(path, "//anon") || begins_any(path, names, ARRAY_SIZE(names));
}

static enum module_kind module_kind_of(const struct proc_mapping *mapping)
{
	const char *path = mapping->path;

	if (is_plain_memory(path))
		return MODULE_ANON;
	/* A 32-bit program has a vDSO of its own. */
	if (!strcmp(path, "[vdso]"))
		return mapping->end > UINT64_C(1) << 32 ? MODULE_VDSO : MODULE_SPECIAL;
	return path[0] == '[' ? MODULE_SPECIAL : MODULE_FILE;
}

const char *table_clean_path(const char *path, char *copy, size_t size)
{
	static const char suffix[] = " (deleted)";
	size_t length = strlen(path);
	size_t kept = length - MIN(length, sizeof(suffix) - 1);

	if (kept == 0 || kept >= size || strcmp(path + kept, suffix))
		return path;
	memcpy(copy, path, kept);
	copy[kept] = 0;
	return copy;
}

static struct module *get(
	struct processes *ps, enum module_kind kind, const struct module_id *id, const char *path)
{
	struct module *module;
	char copy[4096];
	int err;

	if (kind == MODULE_FILE)
		path = table_clean_path(path, copy, sizeof(copy));
	err = modules_get(ps->options.modules, kind, id, path, &module);
	if (err) {
		ps->module_shortages += failure_is_shortage(err);
		metrics_add(ps->options.metrics, METRIC_MODULES_REFUSED, 1);
		return ps->unknown;
	}
	return module;
}

struct module *table_module(struct processes *ps, int task_fd, const struct proc_mapping *mapping,
	const struct build_id *build_id, bool program)
{
	enum module_kind kind = module_kind_of(mapping);
	struct module_id id = { 0 };

	if (kind == MODULE_ANON)
		return ps->anon;
	if (kind == MODULE_VDSO)
		return ps->vdso;
	if (kind == MODULE_SPECIAL)
		return get(ps, kind, &id, mapping->path);
	if (!file_ids_known(ps->files, mapping, build_id, &id))
		id = file_ids_get(ps->files, task_fd, mapping, build_id);
	if (!id.build_id.size && !program && is_memory_file(mapping->path))
		return ps->anon;
	if (file_hash_is_none(&id.content) && id.file.inode == 0)
		return ps->unknown;
	return get(ps, kind, &id, mapping->path);
}

uint64_t table_shortages(const struct processes *ps)
{
	return file_ids_shortages(ps->files) + ps->module_shortages;
}

int table_add_mapping(
	struct mappings **m, const struct proc_mapping *mapping, struct module *module)
{
	bool in_file = module->kind == MODULE_FILE || module->kind == MODULE_VDSO;
	const struct mapping wanted = { .start = mapping->start,
		.end = mapping->end,
		.file_off = in_file ? mapping->file_off : mapping->start,
		.module = module,
		/* As the kernel reports it; an overlay's own file has other numbers. */
		.file = { .device = mapping->device,
			.inode = mapping->inode,
			.generation = mapping->generation,
			.mtime_ns = module->id.file.mtime_ns,
			.size_bytes = module->id.file.size_bytes } };

	return mappings_add(m, &wanted);
}
