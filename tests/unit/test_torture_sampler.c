/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of agent/sampler while each allocation and each system call fails in turn. */
#include "tests/unit/torture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/sampler/jit_maps/jit_maps.h"
#include "agent/sampler/kernel_symbols/kernel_symbols.h"
#include "base/io.h"
#include "tests/unit/process_fixture.h"

static const uint64_t SECOND = 1000000000;
static const uint64_t KADDR = UINT64_C(0xffffffff81000010);
static uint64_t clock_ns;

/* Replaces libc's function: all clocks stand still until the test advances them. */
int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	(void)clock;
	*ret_time = (struct timespec){
		.tv_sec = (time_t)(clock_ns / SECOND),
		.tv_nsec = (long)(clock_ns % SECOND),
	};
	return 0;
}

/* ---- kernel symbols ------------------------------------------------------------------------- */

struct kernel_world {
	struct fake_proc proc;
	struct metrics metrics;
	struct kernel_symbols *symbols;
};

static void put(struct kernel_world *w, const char *name, const char *text)
{
	int fd = openat(w->proc.fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(io_write_all(fd, text, strlen(text)), 0);
	close(fd);
}

static void begin_kernel(void *context)
{
	struct kernel_world *w = context;

	clock_ns = 1000 * SECOND;
	*w = (struct kernel_world){ 0 };
	fake_proc_init(&w->proc);
	put(w, "kallsyms",
		"ffffffff81000000 T _stext\nffffffff81000000 T startup\n"
		"ffffffff81002000 T _etext\n");
	put(w, "modules", "");
	assert_int_equal(kernel_symbols_create(w->proc.fd, &w->metrics, &w->symbols), 0);
}

static void end_kernel(struct kernel_world *w)
{
	kernel_symbols_destroy(w->symbols);
	fake_proc_deinit(&w->proc);
}

static const char *kernel_name(const struct kernel_world *w, uint64_t kaddr)
{
	const struct kallsyms *table = kernel_symbols_table(w->symbols);
	struct ksymbol symbol;

	return table && kallsyms_lookup(table, kaddr, &symbol) ? symbol.name : "";
}

static int read_kernel(void *context)
{
	const struct kernel_world *w = context;

	return kernel_symbols_table(w->symbols) ? 0 : -ENOMEM;
}

/* After a device error the file is not tried again; a shortage is over a second later. */
static void kernel_has_names_after_a_shortage(void *context, int result)
{
	struct kernel_world *w = context;
	bool shortage = torture_errno() == ENOMEM || torture_errno() == EMFILE;

	if (shortage && result)
		assert_false(kernel_symbols_are_read(w->symbols));
	clock_ns += SECOND;
	if (shortage || !result)
		assert_string_equal(kernel_name(w, KADDR), "startup");
	assert_true(kernel_symbols_are_read(w->symbols) || !shortage);
	end_kernel(w);
}

static void kernel_symbols_are_read_after_a_shortage(void **state)
{
	struct kernel_world w;

	(void)state;
	torture_run(&(struct torture){
		.begin = begin_kernel,
		.operation = read_kernel,
		.end = kernel_has_names_after_a_shortage,
		.context = &w,
		.optional = "*",
		.other_errors = true,
	});
}

static void begin_renewal(void *context)
{
	struct kernel_world *w = context;

	begin_kernel(w);
	assert_string_equal(kernel_name(w, KADDR), "startup");
	put(w, "kallsyms",
		"ffffffff81000000 T _stext\nffffffff81000000 T startup\n"
		"ffffffff81002000 T _etext\nffffffffc1000000 t late_work\t[late]\n");
	put(w, "modules", "late 16384 0 - Live 0xffffffffc1000000\n");
}

static int renew_kernel(void *context)
{
	struct kernel_world *w = context;

	return kernel_symbols_renew(w->symbols, clock_ns) ? 0 : -ENOMEM;
}

/* The old table is complete, and the next report has the new one. */
static void kernel_keeps_its_names(void *context, int result)
{
	struct kernel_world *w = context;

	assert_string_equal(kernel_name(w, KADDR), "startup");
	if (result) {
		assert_string_equal(kernel_name(w, 0xffffffffc1000010), "");
		assert_true(kernel_symbols_renew(w->symbols, clock_ns));
	}
	assert_string_equal(kernel_name(w, 0xffffffffc1000010), "late_work");
	end_kernel(w);
}

static void kernel_symbols_that_cannot_be_renewed_stay(void **state)
{
	struct kernel_world w;

	(void)state;
	torture_run(&(struct torture){
		.begin = begin_renewal,
		.operation = renew_kernel,
		.end = kernel_keeps_its_names,
		.context = &w,
		.optional = "*",
		.other_errors = true,
	});
}

/* ---- JIT maps ------------------------------------------------------------------------------- */

struct jit_world {
	struct fixture *table;
	struct jit_maps *maps;
	struct process *parent, *child;
};

static struct process *process_with_root(struct jit_world *w, uint32_t pid, const char *root)
{
	show(w->table, pid, &w->table->program, (struct fake_process){ 0 });
	fake_proc_root(&w->table->proc, pid, root);
	assert_int_equal(processes_scan(w->table->ps, &pid, 1), 0);
	return sampled(w->table, pid, later);
}

static void begin_jit(void *context)
{
	struct jit_world *w = context;
	char root[80], path[128];
	void *state = NULL;

	clock_ns = UINT64_C(1000000000) * SECOND;
	*w = (struct jit_world){ 0 };
	assert_int_equal(process_set_up(&state), 0);
	w->table = state;
	snprintf(root, sizeof(root), "%s/root", w->table->proc.path);
	assert_int_equal(mkdir(root, 0755), 0);
	snprintf(path, sizeof(path), "%s/tmp", root);
	assert_int_equal(mkdir(path, 0755), 0);
	snprintf(path, sizeof(path), "%s/tmp/perf-%u.map", root, PARENT);
	assert_int_equal(io_replace_file(AT_FDCWD, path, "1000 10 first\n", 14, 0644), 0);
	w->parent = process_with_root(w, PARENT, root);
	w->child = process_with_root(w, CHILD, root);
	assert_true(w->parent && w->child);
	assert_int_equal(jit_maps_create(
				 &(struct jit_maps_options){
					 .proc_fd = w->table->proc.fd,
					 .processes = w->table->ps,
					 .metrics = &w->table->metrics,
					 .limit = 16,
				 },
				 &w->maps),
		0);
}

static void end_jit(struct jit_world *w)
{
	void *state = w->table;

	jit_maps_destroy(w->maps);
	process_tear_down(&state);
}

static int hit_and_fork(void *context)
{
	struct jit_world *w = context;

	jit_maps_hit(w->maps, w->parent, clock_ns);
	jit_maps_forked(w->maps, w->parent, w->child, clock_ns);
	return 0;
}

/* The map is read at most ten seconds later, whatever failed. */
static void parent_has_its_names_later(void *context, int result)
{
	struct jit_world *w = context;
	const struct perf_map *map;
	const char *name;
	uint64_t start;

	(void)result;
	clock_ns += 10 * SECOND;
	jit_maps_hit(w->maps, w->parent, clock_ns);
	map = jit_maps_get(w->maps, w->parent);
	assert_non_null(map);
	assert_true(perf_map_lookup(map, 0x1008, &name, &start));
	assert_string_equal(name, "first");
	/* The child has the inherited names, or none. */
	map = jit_maps_get(w->maps, w->child);
	if (map && perf_map_lookup(map, 0x1008, &name, &start))
		assert_string_equal(name, "first");
	end_jit(w);
}

static void perf_maps_are_read_after_a_shortage(void **state)
{
	struct jit_world w;

	(void)state;
	torture_run(&(struct torture){
		.begin = begin_jit,
		.operation = hit_and_fork,
		.end = parent_has_its_names_later,
		.context = &w,
		.optional = "*",
	});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		torture_test(kernel_symbols_are_read_after_a_shortage),
		torture_test(kernel_symbols_that_cannot_be_renewed_stay),
		torture_test(perf_maps_are_read_after_a_shortage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
