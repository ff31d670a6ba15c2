/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/top/table_json.h"

#include <string.h>

#include "agent/sampler/seam/runtime_fibers.h"
#include "base/json.h"

static double part(uint64_t of, uint64_t whole)
{
	return whole ? 100.0 * (double)of / (double)whole : 0;
}

static void put_function(struct json *j, const struct row *row, const struct snapshot *snapshot)
{
	json_text(j, "function", row->name);
	json_text(j, "module", row->detail);
	json_decimal(j, "self_percent", part(row->self_ns, snapshot->weight_ns), 2);
	json_decimal(j, "total_percent", part(row->total_ns, snapshot->weight_ns), 2);
}

/* A process or a fiber: percent of one CPU. */
static void put_process(struct json *j, const struct row *row, uint64_t interval_ns)
{
	json_number(j, "pid", row->pid);
	if (row->fiber_id)
		json_number(j, "goid", row->fiber_id);
	json_text(j, "comm", row->name);
	json_decimal(j, "cpu_percent", part(row->self_ns, interval_ns), 2);
	json_decimal(j, "kernel_percent", part(row->kernel_ns, interval_ns), 2);
	json_text(j, "hottest_function", row->detail);
}

static void put_rows(struct json *j, const struct view *v, const struct snapshot *snapshot,
	const struct screen_facts *facts)
{
	const struct rows *rows = &snapshot->by[v->by];

	json_array(j, "rows");
	for (size_t i = 0; i < rows->count; i++) {
		if (!row_matches(&rows->rows[i], v->filter))
			continue;
		json_object(j, NULL);
		if (v->by == ROWS_FUNCTION)
			put_function(j, &rows->rows[i], snapshot);
		else
			put_process(j, &rows->rows[i], facts->interval_ns);
		json_close(j);
	}
	json_close(j);
}

static void put_totals(
	struct json *j, const struct snapshot *snapshot, const struct screen_facts *facts)
{
	const struct report_summary *s = &snapshot->summary;

	json_signed(j, "time", facts->time_s);
	json_decimal(j, "seconds", (double)facts->interval_ns / 1e9, 3);
	json_number(j, "cpus", facts->cpus);
	json_number(j, "frequency_hertz", facts->frequency_hz);
	json_number(j, "samples", s->of[SAMPLE_TYPE_TICKS].count);
	json_number(j, "lost", screen_lost_samples(facts->metrics));
	json_decimal(j, "cpu_percent", part(snapshot->weight_ns, facts->interval_ns), 2);
	if (s->user_stacks)
		json_decimal(
			j, "complete_stacks_percent", part(s->complete_stacks, s->user_stacks), 1);
	json_decimal(j, "own_cpu_percent", part(facts->own_ns, facts->interval_ns), 2);
	if (facts->note)
		json_text(j, "note", facts->note);
	else
		json_null(j, "note");
}

int table_json(struct buffer *out, const struct view *v, struct snapshot *snapshot,
	const struct screen_facts *facts)
{
	static const char *const kinds[ROWS_KINDS] = { "process", "function" };
	struct json j;

	rows_order(&snapshot->by[v->by], v->key, v->reverse);
	json_init(&j, out, JSON_COMPACT);
	json_object(&j, NULL);
	put_totals(&j, snapshot, facts);
	json_text(&j, "by", kinds[v->by] ? kinds[v->by] : runtime_fibers()->one);
	put_rows(&j, v, snapshot, facts);
	json_close(&j);
	json_finish(&j);
	return buffer_string(out, "\n");
}
