/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/kernel_symbols/kernel_symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/failure.h"
#include "base/host.h"
#include "base/intern.h"
#include "base/log.h"
#include "base/thread.h"
#include "bpf/abi/kernel_walk.h"

enum { MAX_MODULE_LINE = 4096 };

static const uint64_t RETRY_NS = 1000000000;

/*
 * The first reading, by a thread if one can start. Until it is joined, `modules` below is the
 * thread's, too.
 */
struct kernel_symbols_reading {
	pthread_t thread;
	bool runs; /* was started and is not joined yet */
	bool done; /* atomic: joining it does not wait any more */
	struct kallsyms *table;
	int err;
};

struct kernel_symbols {
	int proc_fd;
	struct metrics *metrics;
	struct kallsyms *table; /* until it is read, only what came and went meanwhile */
	bool read;
	bool hidden; /* or cannot be read at all: not tried again */
	bool begun; /* kernel_symbols_begin() has returned true */
	bool postponed; /* it could not be read so far, which was logged */
	uint64_t retry_ns; /* CLOCK_MONOTONIC; not before */
	uint64_t modules; /* hash of the loaded modules and their addresses */
	struct kernel_symbols_reading reading;
};

/* *RET_FD is -1 if there are no modules. Fails only for a transient reason. */
static int kernel_modules_open(int proc_fd, int *ret_fd)
{
	int fd = host_openat(proc_fd, "modules", O_RDONLY | O_CLOEXEC);
	int err = fd < 0 ? -errno : 0;

	if (failure_is_transient(err))
		return err;
	*ret_fd = fd;
	return 0;
}

/* Hashes name and address of each module; the other fields change with each use. */
static int kernel_modules_hash(int proc_fd, uint64_t *ret_hash)
{
	autoclose int fd = -1;
	autofclose FILE *file = NULL;
	char line[MAX_MODULE_LINE];
	uint64_t hash = 0;
	int err = kernel_modules_open(proc_fd, &fd);

	if (err)
		return err;
	file = fd < 0 ? NULL : fdopen(fd, "r");
	if (fd >= 0 && !file)
		return -ENOMEM;
	take_fd(&fd);
	while (file && fgets(line, sizeof(line), file)) {
		char name[64], kaddr[32];

		if (sscanf(line, "%63s %*s %*s %*s %*s %31s", name, kaddr) != 2)
			continue;
		/* Lines may change their order. */
		hash += hash_bytes(name, strlen(name)) ^ hash_bytes(kaddr, strlen(kaddr)) * 3;
	}
	*ret_hash = hash;
	return 0;
}

static int kallsyms_read(int proc_fd, struct kallsyms **ret_table)
{
	autoclose int fd = host_openat(proc_fd, "kallsyms", O_RDONLY | O_CLOEXEC);
	autoclose int modules_fd = -1;
	int err = fd < 0 ? -errno : 0;

	if (!err)
		err = kernel_modules_open(proc_fd, &modules_fd);
	if (!err)
		err = kallsyms_create(fd, ret_table);
	if (err)
		return err;
	if (modules_fd >= 0)
		(void)kallsyms_place_modules(*ret_table, modules_fd);
	return 0;
}

/* The table and, before it, the hash of the modules: one loaded in between is noticed later. */
static int kernel_symbols_read(struct kernel_symbols *k, struct kallsyms **ret_table)
{
	int err = kernel_modules_hash(k->proc_fd, &k->modules);

	return err ? err : kallsyms_read(k->proc_fd, ret_table);
}

/* ---- reading beside the loop ---------------------------------------------------------------- */

static void *kernel_symbols_run(void *context)
{
	struct kernel_symbols *k = context;

	k->reading.err = kernel_symbols_read(k, &k->reading.table);
	__atomic_store_n(&k->reading.done, true, __ATOMIC_RELEASE);
	return NULL;
}

/* Begins to read the symbols, if a thread can: input is recorded in one thread only. */
static void kernel_symbols_start(struct kernel_symbols *k)
{
	struct kernel_symbols_reading *reading = &k->reading;

	*reading = (struct kernel_symbols_reading){ 0 };
	reading->runs = !host_current && !thread_start(&reading->thread, kernel_symbols_run, k);
}

/* Waits for the thread. Returns its error; without one, reading.table is there. */
static int kernel_symbols_join(struct kernel_symbols *k)
{
	pthread_join(k->reading.thread, NULL);
	k->reading.runs = false;
	return k->reading.err;
}

int kernel_symbols_create(int proc_fd, struct metrics *metrics, struct kernel_symbols **ret_symbols)
{
	struct kernel_symbols *k = calloc(1, sizeof(*k));
	int err = k ? kallsyms_create_empty(&k->table) : -ENOMEM;

	if (err) {
		free(k);
		return err;
	}
	k->proc_fd = proc_fd;
	k->metrics = metrics;
	*ret_symbols = k;
	return 0;
}

void kernel_symbols_destroy(struct kernel_symbols *k)
{
	if (!k)
		return;
	if (k->reading.runs && !kernel_symbols_join(k))
		kallsyms_destroy(k->reading.table);
	kallsyms_destroy(k->table);
	free(k);
}

static void kernel_symbols_postpone(struct kernel_symbols *k, int err)
{
	bool opened = err != -EMFILE && err != -ENFILE;

	/* Megabytes were read and parsed until this; running out of descriptors costs little. */
	k->retry_ns = opened ? clock_monotonic_ns() + RETRY_NS : 0;
	if (!k->postponed)
		log_warn("the kernel's symbols cannot be read now, trying again", "error=\"%s\"",
			strerror(-err));
	k->postponed = true;
}

static bool kernel_symbols_must_wait(const struct kernel_symbols *k)
{
	return k->retry_ns && clock_monotonic_ns() < k->retry_ns;
}

const struct kallsyms *kernel_symbols_table(struct kernel_symbols *k)
{
	int err;

	if (k->read)
		return k->table;
	if (k->hidden || kernel_symbols_must_wait(k))
		return NULL;
	err = k->reading.runs ? kernel_symbols_join(k) : kernel_symbols_read(k, &k->reading.table);
	if (!err) {
		kallsyms_read_over(&k->table, take(k->reading.table));
		k->read = true;
		return k->table;
	}
	if (failure_is_transient(err)) {
		kernel_symbols_postpone(k, err);
		return NULL;
	}
	k->hidden = true;
	if (err == -EACCES)
		log_warn("kernel frames have no names: kernel.kptr_restrict hides "
			 "/proc/kallsyms, ignoring",
			"error=%d", err);
	else
		log_warn("kernel frames have no names: /proc/kallsyms cannot be read, "
			 "ignoring",
			"error=\"%s\"", strerror(-err));
	return NULL;
}

bool kernel_symbols_are_read(const struct kernel_symbols *k)
{
	return k->read || k->hidden;
}

bool kernel_symbols_begin(struct kernel_symbols *k)
{
	struct kernel_symbols_reading *reading = &k->reading;

	if (k->begun)
		return false;
	if (!kernel_symbols_are_read(k) && !reading->runs && !kernel_symbols_must_wait(k))
		kernel_symbols_start(k);
	if (reading->runs && !__atomic_load_n(&reading->done, __ATOMIC_ACQUIRE))
		return false;
	(void)kernel_symbols_table(k);
	k->begun = kernel_symbols_are_read(k);
	return k->begun;
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
		/* The linker puts it behind the rules, without a symbol. */
		.index = (m->orc_rules_end + 3) & ~UINT64_C(3),
		.count = (uint32_t)rows,
	};
	_Static_assert(sizeof(ret_tables->trampolines) == sizeof(m->trampolines), "the same");
	memcpy(ret_tables->trampolines, m->trampolines, sizeof(m->trampolines));
	return true;
}

size_t kernel_symbols_bytes(const struct kernel_symbols *k)
{
	return k->read ? kallsyms_bytes(k->table) : 0;
}

int kernel_symbols_change(struct kernel_symbols *k, const struct kallsyms_event *event, bool gone)
{
	size_t refused;
	int err;

	if (k->hidden)
		return -EACCES;
	refused = kallsyms_refused(k->table);
	err = gone ? kallsyms_gone(k->table, event) : kallsyms_add(k->table, event);
	metrics_add(
		k->metrics, METRIC_KERNEL_SYMBOLS_REFUSED, kallsyms_refused(k->table) - refused);
	return err;
}

uint32_t kernel_symbols_tenant(const struct kernel_symbols *k, uint64_t kaddr)
{
	return kallsyms_tenant(k->table, kaddr);
}

uint64_t kernel_symbols_epoch(const struct kernel_symbols *k)
{
	return kallsyms_epoch(k->table);
}

void kernel_symbols_forget(struct kernel_symbols *k, uint64_t before_ns)
{
	kallsyms_forget(k->table, before_ns);
}

bool kernel_symbols_renew(struct kernel_symbols *k, uint64_t now_ns)
{
	struct kallsyms *newer;
	uint64_t modules;

	if (!k->read)
		return false;
	if (kernel_modules_hash(k->proc_fd, &modules))
		return false;
	if (modules == k->modules || kallsyms_read(k->proc_fd, &newer))
		return false;
	if (kallsyms_replace(&k->table, newer, now_ns)) {
		kallsyms_destroy(newer);
		metrics_add(k->metrics, METRIC_KERNEL_SYMBOLS_REFUSED, 1);
		return false;
	}
	k->modules = modules;
	return true;
}
