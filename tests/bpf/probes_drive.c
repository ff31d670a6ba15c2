/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bpf/probes_drive.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "agent/loop/loop.h"
#include "agent/sampler/sampler.h"
#include "agent/sampler/seam/latency_probes.h"
#include "agent/sampler/seam/window_latency.h"
#include "agent/sampler/seam/window_processes.h"
#include "base/cleanup.h"
#include "base/log.h"

enum { MAX_PROBES = LATENCY_PROBES_MAX + 1, MAX_FIELDS = 16, LINE_BYTES = 4096 };

struct probes_drive {
	struct loop *loop;
	struct sampler *sampler;
	struct latency_probe probes[MAX_PROBES];
	char *lines[MAX_PROBES]; /* have their text */
	const char *functions[MAX_PROBES][MAX_FIELDS];
	size_t count;
};

/* ---- windows -------------------------------------------------------------------------------- */

static void print_cell(const struct sealed_window *window, const struct window_latency_cell *cell)
{
	const struct window_latency *latency = window->latency;
	const struct window_latency_function *f = &latency->functions[cell->function];
	const struct process_facts *p = window_processes_find(window->processes, cell->process);

	printf("cell\t%s\t%s\t%u\t%s\t%d\t%llu\t%u\t%llu\t%llu\t%llu\n",
		latency->probes[f->probe].name, f->name, p ? p->pid : 0, p ? p->comm : "?",
		p ? p->ended : 0, (unsigned long long)cell->by, cell->bucket,
		(unsigned long long)cell->calls, (unsigned long long)cell->total_ns,
		(unsigned long long)cell->max_ns);
}

static void print_latency(const struct sealed_window *window)
{
	const struct window_latency *latency = window->latency;

	for (size_t i = 0; i < latency->probe_count; i++) {
		const struct window_latency_probe *p = &latency->probes[i];

		printf("probe\t%s\t%s\t%zu\t%zu\t%zu\t%zu\t%u\t%llu\t%s\n", p->name,
			window_latency_state_name(p->state), p->functions, p->sites, p->files,
			p->processes, p->factor, (unsigned long long)p->hits, p->reason);
	}
	for (size_t i = 0; i < latency->cell_count; i++)
		print_cell(window, &latency->cells[i]);
	printf("trap\t%llu\n", (unsigned long long)latency->trap_ns);
	printf("losses\t%llu\t%llu\t%llu\t%llu\n", (unsigned long long)latency->losses.unmatched,
		(unsigned long long)latency->losses.abandoned,
		(unsigned long long)latency->losses.cells_full,
		(unsigned long long)latency->losses.processes_refused);
}

static void on_sealed(void *context, const struct sealed_window *window)
{
	(void)context;
	if (window->latency)
		print_latency(window);
	printf("end\n");
	fflush(stdout);
}

/* ---- commands ------------------------------------------------------------------------------- */

/* `probe NAME PROCESSES BY FUNCTION…`, by tabs. */
static void add_probe(struct probes_drive *d, const char *text)
{
	struct latency_probe *probe = &d->probes[d->count];
	char *rest = strdup(text), *field;

	d->lines[d->count] = rest;
	(void)strsep(&rest, "\t");
	*probe = (struct latency_probe){ .functions = d->functions[d->count] };
	probe->name = strsep(&rest, "\t");
	probe->processes = strsep(&rest, "\t");
	probe->by = (enum abi_latency_by)strtoul(strsep(&rest, "\t"), NULL, 10);
	while ((field = strsep(&rest, "\t")) != NULL)
		d->functions[d->count][probe->function_count++] = field;
	d->count++;
}

static void set_probes(struct probes_drive *d)
{
	struct latency_probes_problem problem = { 0 };
	int err = sampler_latency_set_probes(d->sampler, d->probes, d->count, &problem);

	printf("set\t%d\t%zu\t%s\n", err, problem.number, err ? problem.text : "");
	fflush(stdout);
	while (d->count)
		free(d->lines[--d->count]);
}

static void obey(struct probes_drive *d, const char *line)
{
	struct sampler_latency_cost cost;

	if (!strncmp(line, "probe\t", 6)) {
		add_probe(d, line);
	} else if (!strcmp(line, "set")) {
		set_probes(d);
	} else if (!strcmp(line, "window")) {
		if (sampler_rotate_window(d->sampler))
			printf("busy\nend\n");
		fflush(stdout);
	} else if (!strncmp(line, "allow\t", 6)) {
		sampler_latency_allow(d->sampler, strtod(line + 6, NULL));
	} else if (!strcmp(line, "cost")) {
		cost = sampler_latency_cost(d->sampler);
		printf("cost\t%llu\t%llu\t%llu\n", (unsigned long long)cost.bpf_ns,
			(unsigned long long)cost.trap_ns,
			(unsigned long long)sampler_sizes(d->sampler).bpf_map_bytes);
		fflush(stdout);
	}
}

static void on_input(void *context, int fd, uint32_t events)
{
	struct probes_drive *d = context;
	char line[LINE_BYTES];

	(void)events;
	(void)fd;
	if (!fgets(line, sizeof(line), stdin)) {
		loop_stop(d->loop);
		return;
	}
	line[strcspn(line, "\n")] = 0;
	obey(d, line);
}

/* ---- the run -------------------------------------------------------------------------------- */

int probes_drive(const char *cache)
{
	struct probes_drive *d = calloc(1, sizeof(*d));
	struct sampler_failure failure = { 0 };
	struct sampler_options options = {
		.cache_directory = cache,
		.cache_limit_bytes = 64 << 20,
		.profile_limit_bytes = 64 << 20,
		.sealed = on_sealed,
		.collect = { .event = COLLECT_CPU_CLOCK,
			.frequency_hz = 19,
			.user = true,
			.kernel = true },
	};
	int err;

	setvbuf(stdin, NULL, _IONBF, 0);
	err = d ? loop_create(&d->loop) : -ENOMEM;
	if (err)
		return 1;
	options.loop = d->loop;
	options.sealed_context = d;
	err = sampler_create(&options, &d->sampler, &failure);
	if (!err)
		err = sampler_start(d->sampler);
	if (!err)
		err = loop_add(d->loop, STDIN_FILENO, EPOLLIN, on_input, d);
	printf("ready\t%d\t%s\n", err, failure.step ? failure.step : "");
	fflush(stdout);
	if (!err)
		err = loop_run(d->loop);
	sampler_destroy(d->sampler);
	loop_destroy(d->loop);
	free(d);
	return err ? 1 : 0;
}
