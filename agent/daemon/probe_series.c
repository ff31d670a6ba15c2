/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the cells of a window to histograms. Cells are handled process by process, so that the
 * labels of a process are made once, and only those of one are in memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/daemon/probes_internal.h"
#include "agent/sampler/seam/process_origin.h"
#include "base/cleanup.h"

enum { LABELS_BYTES = 64 << 10 };

/* While there are too many series, those of ended processes go sooner. */
static const uint64_t IDLE_IF_FULL_NS = UINT64_C(300000000000);

/* The cells of one process, or those of one histogram among them. */
struct probe_cells {
	const struct window_latency_cell **items;
	size_t count;
};

struct probe_adding {
	struct daemon_probes *p;
	const struct window_latency *latency;
	const struct process_facts *facts; /* NULL = not known */
	const struct labels *labels; /* of that process */
	uint64_t now_ns;
};

/* ---- cells ---------------------------------------------------------------------------------- */

static int probe_compare_cells(const void *a, const void *b)
{
	const struct window_latency_cell *x = *(const struct window_latency_cell *const *)a;
	const struct window_latency_cell *y = *(const struct window_latency_cell *const *)b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	return x->by < y->by ? -1 : x->by > y->by;
}

static bool probe_same_process(
	const struct window_latency_cell *a, const struct window_latency_cell *b)
{
	return a->process == b->process;
}

static bool probe_same_histogram(
	const struct window_latency_cell *a, const struct window_latency_cell *b)
{
	return a->process == b->process && a->function == b->function && a->by == b->by;
}

/* The cells at the beginning of CELLS that belong together. */
static struct probe_cells probe_first_cells(const struct probe_cells *cells,
	bool (*are_same)(const struct window_latency_cell *a, const struct window_latency_cell *b))
{
	size_t count = 1;

	while (count < cells->count && are_same(cells->items[0], cells->items[count]))
		count++;
	return (struct probe_cells){ cells->items, count };
}

static uint64_t probe_cells_calls(const struct probe_cells *cells)
{
	uint64_t calls = 0;

	for (size_t i = 0; i < cells->count; i++)
		calls += cells->items[i]->calls;
	return calls;
}

/* ---- series --------------------------------------------------------------------------------- */

static void probe_add_to_series(
	struct probe_adding *a, const struct probe_cells *cells, size_t place)
{
	struct latency_series *series = &a->p->series.items[place];

	for (size_t i = 0; i < cells->count; i++) {
		const struct window_latency_cell *cell = cells->items[i];

		latency_series_add(series, cell->bucket, cell->calls, cell->total_ns);
	}
	series->called_ns = a->now_ns;
	if (a->facts)
		series->caller = (struct latency_caller){ a->facts->pid, a->facts->start_ticks };
}

/* Finds the histogram of CELL, or makes it. */
static int probe_find_series(
	struct probe_adding *a, const struct window_latency_cell *cell, size_t *ret_place)
{
	const struct window_latency_function *function = &a->latency->functions[cell->function];
	const struct window_latency_probe *probe = &a->latency->probes[function->probe];
	autocall(buffer_deinit) struct buffer text;
	uint64_t group = 0;
	const struct config_probe *settings =
		probe_entries_find(&a->p->now, probe->name, &group)
			?: probe_entries_find(&a->p->before, probe->name, &group);
	const struct probe_labels_parts parts = { .probe = settings,
		.function = function,
		.process = a->labels,
		.facts = a->facts,
		.by = probe->by,
		.key = cell->by };
	int err;

	buffer_init(&text, LABELS_BYTES);
	if (!settings)
		return -ENOENT;
	err = probe_labels_write(&parts, &text);
	return err ? err
		   : latency_series_find(&a->p->series, text.bytes, text.size, group, ret_place);
}

static void probe_add_histogram(struct probe_adding *a, const struct probe_cells *cells)
{
	size_t place;
	int err = probe_find_series(a, cells->items[0], &place);

	if (!err) {
		probe_add_to_series(a, cells, place);
		return;
	}
	a->p->series_refused = a->p->series_refused || err == -E2BIG;
	metrics_add(a->p->metrics, err == -E2BIG ? METRIC_CALLS_SERIES_FULL : METRIC_CALLS_MEMORY,
		probe_cells_calls(cells));
}

static void probe_add_process(
	struct probe_adding *a, struct probe_cells cells, const struct symbolize *symbolize)
{
	autocall(labels_deinit) struct labels labels = { 0 };
	bool keep;
	int err = probe_labels_of_process(&a->p->rules, a->facts, symbolize, &labels, &keep);

	if (err || !keep) {
		metrics_add(a->p->metrics,
			err == -ENOMEM ? METRIC_CALLS_MEMORY
			: err          ? METRIC_CALLS_RELABEL_FAILED
				       : METRIC_CALLS_RELABEL_DROPPED,
			probe_cells_calls(&cells));
		return;
	}
	a->labels = &labels;
	while (cells.count) {
		const struct probe_cells first = probe_first_cells(&cells, probe_same_histogram);

		probe_add_histogram(a, &first);
		cells.items += first.count;
		cells.count -= first.count;
	}
}

void probe_series_add(struct daemon_probes *p, const struct sealed_window *window,
	const struct symbolize *symbolize)
{
	const struct window_latency *latency = window->latency;
	struct probe_adding a = { .p = p, .latency = latency, .now_ns = window->ended_ns };
	autofree const struct window_latency_cell **items =
		calloc(latency->cell_count + 1, sizeof(*items));
	autocall(metadata_view_deinit) struct metadata_view containers = { .count = 0 };
	struct probe_cells cells = { items, latency->cell_count };

	p->series_refused = false;
	if (!items) {
		for (size_t i = 0; i < latency->cell_count; i++)
			metrics_add(p->metrics, METRIC_CALLS_MEMORY, latency->cells[i].calls);
		return;
	}
	for (size_t i = 0; i < cells.count; i++)
		items[i] = &latency->cells[i];
	qsort((void *)items, cells.count, sizeof(*items), probe_compare_cells);
	metadata_view_init(&containers, p->metadata);
	p->rules.containers = &containers;
	while (cells.count) {
		const struct probe_cells first = probe_first_cells(&cells, probe_same_process);

		a.facts = window_processes_find(window->processes, first.items[0]->process);
		probe_add_process(&a, first, symbolize);
		cells.items += first.count;
		cells.count -= first.count;
	}
	p->rules.containers = NULL;
}

/* ---- the recent past ------------------------------------------------------------------------ */

int probe_history_add(struct daemon_probes *p, const struct sealed_window *window)
{
	const struct window_latency *latency = window->latency;
	autofree struct latency_history_name *names =
		calloc(latency->function_count + 1, sizeof(*names));
	autofree struct latency_history_cell *cells =
		calloc(latency->cell_count + 1, sizeof(*cells));
	const struct latency_history_measured measured = {
		.time_ms = (int64_t)(window->began_real_ns / 1000000),
		.duration_ms = (int64_t)((window->ended_ns - window->began_ns) / 1000000),
		.names = names,
		.name_count = latency->function_count,
		.cells = cells,
		.cell_count = latency->cell_count,
	};

	if (!names || !cells)
		return -ENOMEM;
	for (size_t i = 0; i < latency->function_count; i++) {
		const struct window_latency_function *function = &latency->functions[i];

		names[i] = (struct latency_history_name){ latency->probes[function->probe].name,
			function->name, function->binary };
	}
	for (size_t i = 0; i < latency->cell_count; i++) {
		const struct window_latency_cell *cell = &latency->cells[i];

		cells[i] = (struct latency_history_cell){ cell->function, cell->bucket, cell->calls,
			cell->total_ns, cell->max_ns };
	}
	return latency_history_add(p->history, &measured);
}

int daemon_probes_write_history(
	const struct daemon_probes *p, int64_t from_ms, int64_t to_ms, struct buffer *out)
{
	struct json j;
	int err;

	json_init(&j, out, JSON_COMPACT);
	json_object_by_line(&j, NULL);
	probe_states_write_reasons(p, &j);
	err = latency_history_write(p->history, from_ms, to_ms, &j);
	if (err)
		return err;
	json_close(&j);
	json_finish(&j);
	return buffer_string(out, "\n");
}

/* ---- the end of series ---------------------------------------------------------------------- */

struct probe_expiry {
	const struct daemon_probes *p;
	uint64_t now_ns, idle_ns;
};

static bool probe_group_is_known(const struct daemon_probes *p, uint64_t group)
{
	for (size_t i = 0; i < p->now.settings.count; i++) {
		if (p->now.groups[i] == group)
			return true;
	}
	for (size_t i = 0; i < p->before.settings.count; i++) {
		if (p->before.groups[i] == group)
			return true;
	}
	return false;
}

static bool probe_caller_is_gone(const struct latency_caller *caller)
{
	const struct process_facts facts = { .pid = caller->pid,
		.start_ticks = caller->start_ticks };
	struct process_origin origin = { 0 };

	if (!caller->pid)
		return true;
	if (process_origin_read(&facts, false, &origin))
		return true;
	process_origin_deinit(&origin);
	return false;
}

/* A process that only calls rarely is asked for once in a while. */
static bool probe_series_is_gone(void *context, struct latency_series *series)
{
	const struct probe_expiry *e = context;

	if (!probe_group_is_known(e->p, series->group))
		return true;
	if (e->now_ns < series->called_ns + e->idle_ns)
		return false;
	if (probe_caller_is_gone(&series->caller))
		return true;
	series->called_ns = e->now_ns;
	return false;
}

void probe_series_expire(struct daemon_probes *p, uint64_t now_ns)
{
	struct probe_expiry e = {
		.p = p,
		.now_ns = now_ns,
		.idle_ns = p->series_refused ? MIN(p->idle_ns, IDLE_IF_FULL_NS) : p->idle_ns,
	};
	size_t dropped = latency_series_drop(&p->series, probe_series_is_gone, &e);

	metrics_add(p->metrics, METRIC_PROBE_SERIES_DROPPED, dropped);
}
