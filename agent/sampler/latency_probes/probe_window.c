/* SPDX-License-Identifier: Apache-2.0 */
/* What a window says about the probes: copies of everything, made when it is sealed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/latency_probes/latency_probes_internal.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/log.h"

enum {
	MAX_BYTES = 64 << 20, /* of a window's copies */
	NO_FUNCTION = -1,
	/*
	 * A cell without calls in so many windows makes room for others once most of it is used: a
	 * goroutine that has ended will not call again.
	 */
	IDLE_WINDOWS = 3,
};

static const double MOST = 0.75;

/* One window being filled. */
struct sealing {
	struct latency_probes *lp;
	struct window_latency *w;
	int32_t *functions; /* index into w->functions by function number; NO_FUNCTION */
	bool *ended; /* by function number: this is the last window of its calls */
	size_t function_room;
	struct latency_cell *cells; /* as read */
	size_t cell_count, cell_capacity;
	bool crowded; /* most cells are in use */
	int err;
};

/* ---- probes --------------------------------------------------------------------------------- */

static const char *seal_text(struct sealing *s, const char *text)
{
	const char *copy = arena_strndup(&s->w->memory, text, strlen(text));

	if (!copy)
		s->err = -ENOMEM;
	return copy ? copy : "";
}

static void seal_probe(struct sealing *s, struct named_probe *np, uint64_t now_ns)
{
	struct window_latency_probe *probe = &s->w->probes[s->w->probe_count++];
	struct probe_summary summary;

	probe_summary_make(s->lp, np, &summary);
	*probe = (struct window_latency_probe){
		.name = seal_text(s, np->spec.of.name),
		.by = np->spec.of.by,
		.kernel = np->spec.of.kernel,
		.state = summary.state,
		.reason = seal_text(s, summary.reason),
		.functions = summary.functions,
		.refused_functions = summary.refused_functions,
		.sites = summary.sites,
		.files = summary.files,
		.refused_files = summary.refused_files,
		.processes = np->removed ? 0 : process_sets_count(&s->lp->processes, np->set),
		.factor = summary.factor,
		.hits = np->hits,
		.suspended_ns =
			np->suspended_until_ns > now_ns ? np->suspended_until_ns - now_ns : 0,
	};
	np->hits = 0;
}

/* ---- functions ------------------------------------------------------------------------------ */

static void seal_function(struct sealing *s, uint32_t probe, const struct probe_run *run,
	const struct run_function *f)
{
	struct window_latency *w = s->w;

	if (w->function_count == s->function_room) {
		s->err = -ENOMEM;
		return;
	}
	s->functions[f->number] = (int32_t)w->function_count;
	s->ended[f->number] = run->ended;
	w->functions[w->function_count++] = (struct window_latency_function){
		.probe = probe,
		.factor = latency_factor(s->lp->latency, f->number),
		.name = seal_text(s, f->name),
		.linkage = seal_text(s, f->linkage),
		.binary = seal_text(s, f->binary),
		.build_id = f->build_id,
		.address = f->address,
	};
}

/* The functions of NP, the one with number PROBE in the window, of runs that no window has yet. */
static void seal_functions(struct sealing *s, uint32_t probe, const struct named_probe *np)
{
	for (size_t r = 0; r < np->run_count; r++) {
		const struct probe_run *run = np->runs[r];

		if (run->sealed)
			continue;
		for (size_t i = 0; i < run_function_count(run); i++) {
			const struct run_function f = run_function_at(run, i);

			if (f.numbered && f.measured)
				seal_function(s, probe, run, &f);
		}
	}
}

/* ---- cells ---------------------------------------------------------------------------------- */

static void on_cell(void *context, const struct latency_cell *cell)
{
	struct sealing *s = context;
	int err = array_reserve(
		s->cells, s->cell_capacity, s->cell_count + 1, (size_t)ABI_LATENCY_CELLS);

	if (err)
		s->err = err;
	else
		s->cells[s->cell_count++] = *cell;
}

static void on_added(void *context, const struct latency_cell *delta)
{
	struct sealing *s = context;

	if (delta->function >= LATENCY_PROBES_FUNCTIONS ||
		s->functions[delta->function] == NO_FUNCTION)
		return;
	s->w->cells[s->w->cell_count++] = (struct window_latency_cell){
		.function = (uint32_t)s->functions[delta->function],
		.process = delta->process,
		.by = delta->by,
		.bucket = delta->bucket,
		.calls = delta->count,
		.total_ns = delta->sum_ns,
		.max_ns = delta->max_ns,
	};
}

static bool sealing_ends_function(const struct sealing *s, uint32_t number)
{
	return number >= LATENCY_PROBES_FUNCTIONS || s->functions[number] == NO_FUNCTION ||
	       s->ended[number];
}

/* Nobody adds to a cell any more whose function or process has ended. */
static bool on_forget(void *context, const struct latency_cell *cell, uint32_t idle)
{
	struct sealing *s = context;
	bool forget = !process_sets_get(&s->lp->processes, cell->process) ||
		      sealing_ends_function(s, cell->function) ||
		      (s->crowded && idle >= IDLE_WINDOWS);

	if (forget)
		latency_forget_cell(s->lp->latency, cell);
	return forget;
}

static int seal_cells(struct sealing *s)
{
	int err = latency_read(s->lp->latency, on_cell, s);

	if (!err)
		err = s->err;
	s->crowded = (double)s->cell_count > MOST * (double)latency_max_cells(s->lp->latency);
	s->w->cells =
		err ? NULL : arena_alloc(&s->w->memory, (s->cell_count + 1) * sizeof(*s->w->cells));
	if (!s->w->cells)
		return err ? err : -ENOMEM;
	return deltas_read(&s->lp->deltas, s->cells, s->cell_count,
		&(struct deltas_reading){
			.added = on_added,
			.forget = on_forget,
			.context = s,
		});
}

/* ---- losses --------------------------------------------------------------------------------- */

static void seal_losses(struct sealing *s)
{
	struct latency_probes *lp = s->lp;
	struct latency_counts now, *last = &lp->counted;
	struct window_latency *w = s->w;

	if (latency_read_counts(lp->latency, &now))
		return;
	w->losses = (struct window_latency_losses){
		.unmeasured = now.unmeasured - last->unmeasured,
		.abandoned = now.abandoned - last->abandoned,
		.unmatched = now.unmatched - last->unmatched,
		.open_full = now.open_full - last->open_full,
		.evicted = now.evicted - last->evicted,
		.cells_full = now.cells_full - last->cells_full,
		.fiber_errors = now.fiber_errors - last->fiber_errors,
		.missed = now.missed - last->missed + kernel_runs_read_missed(lp),
		.processes_refused = lp->processes.refused - lp->processes_refused,
	};
	w->hits = now.hits - last->hits;
	w->bpf_ns = now.bpf_ns - last->bpf_ns;
	*last = now;
	lp->processes_refused = lp->processes.refused;
}

/* ---- the window ----------------------------------------------------------------------------- */

static size_t sealing_functions(const struct latency_probes *lp)
{
	size_t count = 0;

	for (size_t i = 0; i < lp->count; i++)
		for (size_t r = 0; r < lp->items[i]->run_count; r++)
			if (!lp->items[i]->runs[r]->sealed)
				count += run_function_count(lp->items[i]->runs[r]);
	return count;
}

static int sealing_prepare(struct sealing *s)
{
	struct window_latency *w = s->w;

	arena_init(&w->memory, MAX_BYTES);
	s->function_room = sealing_functions(s->lp);
	s->functions = calloc(LATENCY_PROBES_FUNCTIONS, sizeof(*s->functions));
	s->ended = calloc(LATENCY_PROBES_FUNCTIONS, sizeof(*s->ended));
	w->probes = arena_zalloc(&w->memory, (s->lp->count + 1) * sizeof(*w->probes));
	w->functions = arena_zalloc(&w->memory, (s->function_room + 1) * sizeof(*w->functions));
	if (!s->functions || !s->ended || !w->probes || !w->functions)
		return -ENOMEM;
	for (size_t i = 0; i < LATENCY_PROBES_FUNCTIONS; i++)
		s->functions[i] = NO_FUNCTION;
	return 0;
}

static int sealing_compare_places(const void *a, const void *b)
{
	const struct named_probe *first = *(struct named_probe *const *)a;
	const struct named_probe *second = *(struct named_probe *const *)b;

	if (first->removed != second->removed)
		return first->removed ? 1 : -1;
	return (first->place > second->place) - (first->place < second->place);
}

static int sealing_fill(struct sealing *s, uint64_t now_ns)
{
	struct latency_probes *lp = s->lp;
	int err = sealing_prepare(s);

	if (err)
		return err;
	qsort(lp->items, lp->count, sizeof(*lp->items), sealing_compare_places);
	if (lp->latency)
		probe_runs_read_hits(lp);
	for (size_t i = 0; i < lp->count; i++) {
		seal_probe(s, lp->items[i], now_ns);
		if (lp->latency)
			seal_functions(s, (uint32_t)i, lp->items[i]);
	}
	if (s->err || !lp->latency)
		return s->err;
	err = seal_cells(s);
	if (!err)
		seal_losses(s);
	s->w->trap_ns = lp->cost.trap_ns;
	return err;
}

/* The last part of those that have ended is in a window: they may go once they are detached. */
static void sealing_commit(struct latency_probes *lp)
{
	for (size_t i = 0; i < lp->count; i++)
		for (size_t r = 0; r < lp->items[i]->run_count; r++)
			lp->items[i]->runs[r]->sealed |= lp->items[i]->runs[r]->ended;
}

bool latency_probes_seal(struct latency_probes *lp, uint64_t now_ns, struct window_latency *w)
{
	struct sealing s = { .lp = lp, .w = w };
	int err;

	if (!lp->count)
		return false;
	err = sealing_fill(&s, now_ns);
	free(s.functions);
	free(s.ended);
	free(s.cells);
	if (!err) {
		sealing_commit(lp);
		return true;
	}
	log_warn("a window says nothing about functions; the next one has their calls, too",
		"error=\"%s\"", strerror(-err));
	latency_probes_free(w);
	return false;
}

void latency_probes_free(struct window_latency *w)
{
	arena_deinit(&w->memory);
	*w = (struct window_latency){ 0 };
}
