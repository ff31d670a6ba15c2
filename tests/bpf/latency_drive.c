/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bpf/latency_drive.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/sampler/collect/collect.h"
#include "agent/sampler/probes/latency/latency.h"
#include "agent/sampler/probes/probes.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/descriptors.h"

enum { MAX_FUNCTIONS = 4096, MAX_SITES = 65536, MAX_KEYS = 65536, NAME_BYTES = 256 };

struct measured {
	uint32_t function;
	uint64_t by, count, sum_ns, max_ns;
};

struct drive {
	struct collect_options options;
	struct latency_options latency_options;
	struct metrics metrics;
	struct collect *collect;
	struct latency *latency;
	struct latency_attached *attached;
	char names[MAX_FUNCTIONS][NAME_BYTES];
	struct abi_latency_function functions[MAX_FUNCTIONS];
	uint32_t numbers[MAX_FUNCTIONS];
	size_t function_count;
	struct latency_site sites[MAX_SITES]; /* `function` is the place in `functions` */
	size_t site_count;
	struct measured measured[MAX_KEYS];
	size_t measured_count;
	uint32_t child;
	int go; /* the child starts when this is closed */
	uint64_t attach_ns, detach_ns;
};

static int drive_fail(const char *step, int err)
{
	fprintf(stderr, "cannot %s: %s\n", step, strerror(-err));
	return 1;
}

/* ---- the sites ------------------------------------------------------------------------------ */

static bool drive_read_line(struct drive *d, const char *line, struct abi_runtime_go *go)
{
	struct abi_latency_function *function = &d->functions[d->function_count];
	char word[16];
	int fiber;
	long long offset;

	if (sscanf(line, "go %lld %u %u %u", &offset, &go->g_m, &go->m_curg, &go->g_goid) == 4) {
		go->g_tls_offset = (uint64_t)offset;
		return true;
	}
	if (d->function_count < MAX_FUNCTIONS &&
		sscanf(line, "function %255s %d %u %u", d->names[d->function_count], &fiber,
			&function->stack_check, &function->restart_off) == 4) {
		function->flags = fiber ? ABI_LATENCY_FIBER : 0;
		function->go = *go;
		d->function_count++;
		return true;
	}
	if (d->site_count == MAX_SITES || sscanf(line, "%15s %lli", word, &offset) != 2)
		return false;
	d->sites[d->site_count++] = (struct latency_site){
		.file_off = (uint64_t)offset,
		.function = (uint32_t)d->function_count - 1,
		.is_return = !strcmp(word, "return"),
		.is_again = !strcmp(word, "again"),
	};
	if (d->function_count && !strcmp(word, "again"))
		d->functions[d->function_count - 1].flags |= ABI_LATENCY_AGAIN_SITE;
	return d->function_count > 0;
}

static int drive_read_sites(struct drive *d, const char *path)
{
	autofclose FILE *file = fopen(path, "re");
	struct abi_runtime_go go = { 0 };
	char line[512];

	while (file && fgets(line, sizeof(line), file))
		if (!drive_read_line(d, line, &go))
			return -EBADMSG;
	return file && d->site_count ? 0 : -ENOENT;
}

/* ---- before the command runs ---------------------------------------------------------------- */

/* Forks a child that executes ARGV when d->go is closed. */
static int drive_fork(struct drive *d, char **argv)
{
	int ends[2];
	pid_t child;
	char byte;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	child = fork();
	if (child < 0)
		return -errno;
	if (!child) {
		close(ends[1]);
		if (read(ends[0], &byte, 1) == 0)
			execvp(argv[0], argv);
		_exit(127);
	}
	close(ends[0]);
	d->child = (uint32_t)child;
	d->go = ends[1];
	return 0;
}

static int drive_load(struct drive *d, const char **ret_step)
{
	int err;

	d->options.probes = probes_all;
	d->options.user = d->options.kernel = true;
	d->options.no_ticks = true;
	d->options.latency = &d->latency_options;
	d->options.filter.filter_tgids = 1;
	d->options.tgids = &d->child;
	d->options.tgid_count = 1;
	d->options.metrics = &d->metrics;
	err = collect_create(&d->options, &d->collect, ret_step);
	if (err)
		return err;
	return latency_create(collect_probe_object(d->collect, "latency"), &d->latency_options,
		&d->latency, ret_step);
}

static void drive_print_refused(const struct drive *d)
{
	size_t count;
	const struct latency_refused_site *refused = latency_refused_sites(d->attached, &count);

	for (size_t i = 0; i < count; i++)
		printf("refused %#llx %s\n",
			(unsigned long long)d->sites[refused[i].number].file_off,
			strerrorname_np(-refused[i].err));
}

static int drive_attach(struct drive *d, const char *path, const char **ret_step)
{
	autoclose int file = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t began_ns;
	int err = 0;

	if (file < 0)
		return -errno;
	for (size_t i = 0; !err && i < d->function_count; i++)
		err = latency_functions_add(d->latency, &d->functions[i], &d->numbers[i]);
	if (err)
		return err;
	for (size_t i = 0; i < d->site_count; i++)
		d->sites[i].function = d->numbers[d->sites[i].function];
	began_ns = clock_monotonic_ns();
	err = latency_attach(d->latency, file, d->sites, d->site_count, &d->attached, ret_step);
	d->attach_ns = clock_monotonic_ns() - began_ns;
	return err;
}

/* ---- the command ---------------------------------------------------------------------------- */

/* Returns the command's wait status. */
static int drive_run(struct drive *d)
{
	const struct timespec pause = { .tv_nsec = 20000000 };
	int status = -1;

	close(d->go);
	while (!waitpid((pid_t)d->child, &status, WNOHANG)) {
		latency_tick(d->latency, clock_monotonic_ns());
		collect_drain(d->collect, 0);
		nanosleep(&pause, NULL);
	}
	return status;
}

/* ---- what was measured ---------------------------------------------------------------------- */

static void drive_add(void *context, const struct latency_cell *cell)
{
	struct drive *d = context;
	size_t i = 0;

	while (i < d->measured_count &&
		(d->measured[i].function != cell->function || d->measured[i].by != cell->by))
		i++;
	if (i == MAX_KEYS)
		return;
	if (i == d->measured_count) {
		d->measured_count++;
		d->measured[i] = (struct measured){ .function = cell->function, .by = cell->by };
	}
	d->measured[i].count += cell->count;
	d->measured[i].sum_ns += cell->sum_ns;
	d->measured[i].max_ns = MAX(d->measured[i].max_ns, cell->max_ns);
}

static const char *drive_name(const struct drive *d, uint32_t number)
{
	for (size_t i = 0; i < d->function_count; i++)
		if (d->numbers[i] == number)
			return d->names[i];
	return "?";
}

static int drive_print(struct drive *d)
{
	struct latency_counts c;
	int err;

	/* Several, as each looks at a limited number of open calls. */
	for (int i = 0; i < 100; i++)
		latency_tick(d->latency, clock_monotonic_ns());
	err = latency_read(d->latency, drive_add, d);
	if (!err)
		err = latency_read_counts(d->latency, &c);
	if (err)
		return err;
	for (size_t i = 0; i < d->measured_count; i++)
		printf("function %s %llu %llu %llu %llu\n", drive_name(d, d->measured[i].function),
			(unsigned long long)d->measured[i].by,
			(unsigned long long)d->measured[i].count,
			(unsigned long long)d->measured[i].sum_ns,
			(unsigned long long)d->measured[i].max_ns);
#define PRINT(field) printf("count " #field " %llu\n", (unsigned long long)c.field)
	PRINT(hits);
	PRINT(bpf_ns);
	PRINT(calls);
	PRINT(unmeasured);
	PRINT(open_full);
	PRINT(cells_full);
	PRINT(abandoned);
	PRINT(evicted);
	PRINT(unmatched);
	PRINT(fiber_errors);
	printf("count largest_factor %u\n", latency_largest_factor(d->latency));
	printf("count at_once %d\n", latency_attaches_at_once(d->latency));
	printf("count attach_ns %llu\n", (unsigned long long)d->attach_ns);
	return 0;
}

static void drive_finish(struct drive *d)
{
	uint64_t began_ns = clock_monotonic_ns();

	latency_detach(d->latency, take(d->attached));
	printf("count detach_ns %llu\n", (unsigned long long)(clock_monotonic_ns() - began_ns));
	latency_destroy(d->latency);
	collect_destroy(d->collect);
}

static char **drive_read_options(struct drive *d, char **argv)
{
	for (; *argv && !strncmp(*argv, "--", 2); argv++) {
		if (!strcmp(*argv, "--events"))
			d->options.without = MECHANISM_UPROBE_MULTI;
		else if (!strcmp(*argv, "--paths"))
			d->options.without = MECHANISM_ATTACH_COOKIE;
		else if (!strcmp(*argv, "--by=fiber"))
			d->latency_options.by = ABI_LATENCY_BY_FIBER;
		else if (!strcmp(*argv, "--by=process"))
			d->latency_options.by = ABI_LATENCY_BY_PROCESS;
		else if (!strncmp(*argv, "--limit=", 8))
			d->latency_options.max_calls_per_second = strtoull(*argv + 8, NULL, 10);
		else if (!strncmp(*argv, "--open=", 7))
			d->latency_options.max_open_calls = (uint32_t)strtoul(*argv + 7, NULL, 10);
		else if (!strncmp(*argv, "--cells=", 8))
			d->latency_options.max_cells = (uint32_t)strtoul(*argv + 8, NULL, 10);
		else
			return NULL;
	}
	return argv[0] && argv[1] && argv[2] ? argv : NULL;
}

int latency_drive(int argc, char **argv)
{
	autofree struct drive *d = calloc(1, sizeof(*d));
	const char *step = "read the sites";
	char **files = d ? drive_read_options(d, argv) : NULL;
	int status, err;

	(void)argc;
	if (!files)
		return drive_fail("read the arguments", -EINVAL);
	descriptors_raise_limit();
	err = drive_read_sites(d, files[1]);
	if (!err)
		err = drive_fork(d, files + 2);
	if (!err)
		err = drive_load(d, &step);
	if (!err)
		err = drive_attach(d, files[0], &step);
	if (err)
		return drive_fail(step, err);
	drive_print_refused(d);
	status = drive_run(d);
	err = drive_print(d);
	drive_finish(d);
	if (err)
		return drive_fail("read what was measured", err);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
