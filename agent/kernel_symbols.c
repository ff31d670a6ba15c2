/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kernel_symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/intern.h"
#include "base/log.h"
#include "bpf/abi/kernel_walk.h"

enum {
	MAX_GONE = 1024, /* kept at a time; over it the oldest loses its name at once */
	MAX_MODULE_LINE = 4096,
};

struct gone {
	uint64_t kaddr, time_ns;
};

struct kernel_symbols {
	int proc_fd;
	struct kallsyms *table; /* NULL: not read yet, or hidden */
	bool hidden;
	uint64_t modules; /* a hash of which are loaded, and where */
	struct gone gone[MAX_GONE]; /* the oldest first */
	size_t gone_count;
};

/*
 * Name and address of each module; the rest of a line changes with each use. Without
 * /proc/modules there are no modules.
 */
static uint64_t loaded_modules(int proc_fd)
{
	autoclose int fd = openat(proc_fd, "modules", O_RDONLY | O_CLOEXEC);
	autofclose FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	char line[MAX_MODULE_LINE];
	uint64_t hash = 0;

	if (!file)
		return 0;
	take_fd(&fd);
	while (fgets(line, sizeof(line), file)) {
		char name[64], kaddr[32];

		if (sscanf(line, "%63s %*s %*s %*s %*s %31s", name, kaddr) != 2)
			continue;
		/* Neighbours may change places in the list. */
		hash += hash_bytes(name, strlen(name)) ^ hash_bytes(kaddr, strlen(kaddr)) * 3;
	}
	return hash;
}

static int read_table(int proc_fd, struct kallsyms **ret_table)
{
	autoclose int fd = openat(proc_fd, "kallsyms", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -EACCES : kallsyms_create(fd, ret_table);
}

int kernel_symbols_create(int proc_fd, struct kernel_symbols **ret_symbols)
{
	struct kernel_symbols *k = calloc(1, sizeof(*k));

	if (!k)
		return -ENOMEM;
	k->proc_fd = proc_fd;
	*ret_symbols = k;
	return 0;
}

void kernel_symbols_destroy(struct kernel_symbols *k)
{
	if (!k)
		return;
	kallsyms_destroy(k->table);
	free(k);
}

const struct kallsyms *kernel_symbols_table(struct kernel_symbols *k)
{
	int err;

	if (k->table || k->hidden)
		return k->table;
	/* Before the table: a module that comes in between is noticed later. */
	k->modules = loaded_modules(k->proc_fd);
	err = read_table(k->proc_fd, &k->table);
	if (!err)
		return k->table;
	k->hidden = true;
	log_warn("kernel frames stay without names: kernel.kptr_restrict hides /proc/kallsyms, "
		 "ignoring",
		"error=%d", err);
	return NULL;
}

bool kernel_symbols_are_read(const struct kernel_symbols *k)
{
	return k->table || k->hidden;
}

bool kernel_symbols_unwind_tables(struct kernel_symbols *k, struct abi_kernel_tables *ret_tables)
{
	const struct kallsyms *table = kernel_symbols_table(k);
	const struct kallsyms_marks *m = table ? kallsyms_marks(table) : NULL;
	uint64_t rows;

	if (!m || !m->stext || m->etext <= m->stext || m->etext - m->stext > UINT32_MAX)
		return false;
	if (!m->orc_addresses || m->orc_addresses_end < m->orc_addresses || !m->orc_rules)
		return false;
	rows = (m->orc_addresses_end - m->orc_addresses) / sizeof(uint32_t);
	if (rows < ABI_KERNEL_ROWS_MIN || rows > ABI_KERNEL_ROWS_MAX ||
		m->orc_rules_end - m->orc_rules != rows * ABI_KERNEL_RULE_BYTES)
		return false;
	*ret_tables = (struct abi_kernel_tables){
		.text = m->stext,
		.text_end = m->etext,
		.addresses = m->orc_addresses,
		.rules = m->orc_rules,
		/* The linker puts it there without a symbol. */
		.index = (m->orc_rules_end + 3) & ~UINT64_C(3),
		.count = (uint32_t)rows,
	};
	_Static_assert(sizeof(ret_tables->trampolines) == sizeof(m->trampolines), "the same");
	memcpy(ret_tables->trampolines, m->trampolines, sizeof(m->trampolines));
	return true;
}

size_t kernel_symbols_bytes(const struct kernel_symbols *k)
{
	return k->table ? kallsyms_bytes(k->table) : 0;
}

static void remove_gone(struct kernel_symbols *k, size_t first, size_t count)
{
	k->gone_count -= count;
	memmove(&k->gone[first], &k->gone[first + count],
		(k->gone_count - first) * sizeof(*k->gone));
}

int kernel_symbols_add(
	struct kernel_symbols *k, uint64_t kaddr, uint32_t size, const char *name, bool bpf)
{
	if (!kernel_symbols_table(k))
		return -EACCES;
	/* What is there now must not go when its predecessor's time is over. */
	for (size_t i = 0; i < k->gone_count; i++) {
		if (k->gone[i].kaddr == kaddr) {
			remove_gone(k, i, 1);
			break;
		}
	}
	return kallsyms_add(k->table, kaddr, size, name, bpf);
}

void kernel_symbols_gone(struct kernel_symbols *k, uint64_t kaddr, uint64_t now_ns)
{
	if (!k->table)
		return;
	if (k->gone_count == MAX_GONE) {
		kallsyms_remove(k->table, k->gone[0].kaddr);
		remove_gone(k, 0, 1);
	}
	k->gone[k->gone_count++] = (struct gone){ kaddr, now_ns };
}

static void forget_gone(struct kernel_symbols *k, uint64_t before_ns)
{
	size_t count = 0;

	while (count < k->gone_count && k->gone[count].time_ns < before_ns)
		kallsyms_remove(k->table, k->gone[count++].kaddr);
	remove_gone(k, 0, count);
}

bool kernel_symbols_renew(struct kernel_symbols *k, uint64_t before_ns)
{
	struct kallsyms *table;
	uint64_t modules;

	if (!k->table)
		return false;
	forget_gone(k, before_ns);
	modules = loaded_modules(k->proc_fd);
	if (modules == k->modules || read_table(k->proc_fd, &table))
		return false;
	kallsyms_destroy(k->table);
	k->table = table;
	k->modules = modules;
	return true;
}
