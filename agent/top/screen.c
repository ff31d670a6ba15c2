/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/top/screen.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "agent/sampler/seam/runtime_fibers.h"
#include "agent/top/text.h"
#include "base/cleanup.h"

enum {
	LONGEST_LINE = 1024, /* columns of a line if there is no limit */
	HEAD_LINES = 4,
	COMM_COLUMNS = 15,
	MODULE_COLUMNS = 20,
};

static const char REVERSE[] = "\033[7m", NORMAL[] = "\033[m";
static const char HOME[] = "\033[H", CLEAR_LINE[] = "\033[K", CLEAR_REST[] = "\033[J";

struct screen {
	struct buffer *out;
	const struct screen_facts *facts;
	size_t columns; /* usable columns */
	size_t lines; /* 0 = unlimited */
	size_t line; /* lines written */
	bool ansi;
};

/* ---- lines ----------------------------------------------------------------------------------- */

/*
 * Starts a line; false if the screen is full. With a line limit, the last line has no newline,
 * which would scroll.
 */
static bool begin_line(struct screen *s)
{
	if (s->lines && s->line >= s->lines)
		return false;
	if (s->line++)
		buffer_string(s->out, s->ansi ? "\r\n" : "\n");
	return true;
}

static void end_line(struct screen *s)
{
	if (s->ansi)
		buffer_string(s->out, CLEAR_LINE);
}

/* Writes a whole line of text, which may hold foreign parts. */
static void put_line(struct screen *s, const char *text, bool reverse)
{
	if (!begin_line(s))
		return;
	reverse = reverse && s->ansi;
	buffer_string(s->out, reverse ? REVERSE : "");
	if (reverse)
		text_put_padded(s->out, text, s->columns);
	else
		text_put(s->out, text, s->columns);
	buffer_string(s->out, reverse ? NORMAL : "");
	end_line(s);
}

static void print_line(struct screen *s, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void print_line(struct screen *s, const char *format, ...)
{
	char text[LONGEST_LINE];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	put_line(s, text, false);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void put_title(struct screen *s, const struct snapshot *snapshot)
{
	const struct screen_facts *f = s->facts;
	time_t now = (time_t)f->time_s;
	double seconds = (double)f->interval_ns / 1e9;
	struct tm local = { 0 };
	char clock[16] = "";

	localtime_r(&now, &local);
	strftime(clock, sizeof(clock), "%H:%M:%S", &local);
	if (!snapshot) {
		print_line(s, "fathom top - %s, %" PRIu64 " Hz, waiting for the first interval",
			clock, f->frequency_hz);
		return;
	}
	print_line(s,
		"fathom top - %s, last %.1f s: %.2f of %u CPUs, %.0f samples/s (%" PRIu64 " Hz)",
		clock, seconds, percent(snapshot->weight_ns, f->interval_ns) / 100, f->cpus,
		seconds > 0 ? (double)snapshot->summary.of[SAMPLE_TYPE_TICKS].count / seconds : 0,
		f->frequency_hz);
}

uint64_t screen_lost_samples(const struct metrics *metrics)
{
	uint64_t total = 0;

	for (enum metric id = 0; id < METRIC_COUNT; id++) {
		if (!strcmp(metric_texts[id].name, "fathom_samples_lost_total"))
			total += metrics_get(metrics, id);
	}
	return total;
}

/* Writes ` (ring_full 12, bpf_error 1)`, or nothing. */
static void put_reasons(struct buffer *out, const struct metrics *metrics)
{
	const char *separator = " (";

	for (enum metric id = 0; id < METRIC_COUNT; id++) {
		uint64_t value = metrics_get(metrics, id);
		const char *reason = strchr(metric_texts[id].label, '"');

		if (!value || !reason || strcmp(metric_texts[id].name, "fathom_samples_lost_total"))
			continue;
		buffer_printf(out, "%s%.*s %" PRIu64, separator, (int)strcspn(reason + 1, "\""),
			reason + 1, value);
		separator = ", ";
	}
	buffer_string(out, *separator == ',' ? ")" : "");
}

static void put_health(struct screen *s, const struct snapshot *snapshot)
{
	const struct screen_facts *f = s->facts;
	autocall(buffer_deinit) struct buffer text;

	buffer_init(&text, LONGEST_LINE);
	buffer_printf(&text, "lost: %" PRIu64, screen_lost_samples(f->metrics));
	put_reasons(&text, f->metrics);
	if (snapshot && snapshot->summary.user_stacks)
		buffer_printf(&text, "; complete stacks: %.1f%%",
			percent(snapshot->summary.complete_stacks, snapshot->summary.user_stacks));
	buffer_printf(&text, "; own CPU: %.1f%%", percent(f->own_ns, f->interval_ns));
	if (f->pending_builds)
		buffer_printf(&text, "; indexing %u modules", f->pending_builds);
	buffer_append(&text, "", 1);
	put_line(s, text.error ? "" : (const char *)text.bytes, false);
}

static void put_choice(struct screen *s, const struct view *v, size_t shown, size_t all)
{
	const char *const kinds[ROWS_KINDS] = { "processes", "functions", runtime_fibers()->many };
	const char *reversed = v->reverse ? " reversed" : "", *paused = v->paused ? ", PAUSED" : "";

	if (v->editing) {
		print_line(s, "filter: %s_  (Enter: keep, Esc: as before)", v->filter);
		return;
	}
	if (!*v->filter)
		print_line(s, "%s by %s%s: %zu%s%s", kinds[v->by], view_key_name(v->by, v->key),
			reversed, all, paused, s->ansi ? "; ? for help" : "");
	else
		print_line(s, "%s by %s%s, with '%s': %zu of %zu%s", kinds[v->by],
			view_key_name(v->by, v->key), reversed, v->filter, shown, all, paused);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void put_column_names(struct screen *s, enum rows_by by)
{
	char text[128];

	if (by == ROWS_FUNCTION)
		snprintf(text, sizeof(text), " SELF%%  TOTAL%%  %-*s FUNCTION", MODULE_COLUMNS,
			"MODULE");
	else if (by == ROWS_FIBER)
		snprintf(text, sizeof(text), "    PID %10s   %%CPU  %-*s  FUNCTION",
			runtime_fibers()->id, COMM_COLUMNS, "COMMAND");
	else
		snprintf(text, sizeof(text), "    PID    %%CPU    %%SYS  %-*s  HOTTEST FUNCTION",
			COMM_COLUMNS, "COMMAND");
	put_line(s, text, true);
}

/* Writes the numbers, a padded name and a last cell that takes the rest of the line. */
static void put_cells(
	struct screen *s, const char *numbers, const char *name, size_t width, const char *last)
{
	size_t used = text_put(s->out, numbers, s->columns), left = s->columns - used;

	text_put_padded(s->out, name, MIN(width, left));
	left -= MIN(width, left);
	if (left > 2) {
		buffer_string(s->out, "  ");
		text_put(s->out, last, left - 2);
	}
	end_line(s);
}

static void screen_put_row(
	struct screen *s, enum rows_by by, const struct row *row, const struct snapshot *snapshot)
{
	uint64_t interval = s->facts->interval_ns;
	char numbers[96];

	if (!begin_line(s))
		return;
	if (by == ROWS_FUNCTION) {
		snprintf(numbers, sizeof(numbers), "%6.2f  %6.2f  ",
			percent(row->self_ns, snapshot->weight_ns),
			percent(row->total_ns, snapshot->weight_ns));
		put_cells(s, numbers, row->detail, MODULE_COLUMNS - 1, row->name);
	} else if (by == ROWS_FIBER) {
		snprintf(numbers, sizeof(numbers), "%7u %10" PRIu64 " %6.1f  ", row->pid,
			row->fiber_id, percent(row->self_ns, interval));
		put_cells(s, numbers, row->name, COMM_COLUMNS, row->detail);
	} else {
		snprintf(numbers, sizeof(numbers), "%7u  %6.1f  %6.1f  ", row->pid,
			percent(row->self_ns, interval), percent(row->kernel_ns, interval));
		put_cells(s, numbers, row->name, COMM_COLUMNS, row->detail);
	}
}

static size_t count_shown(const struct rows *rows, const char *filter)
{
	size_t shown = 0;

	for (size_t i = 0; i < rows->count; i++)
		shown += row_matches(&rows->rows[i], filter);
	return shown;
}

static void screen_put_rows(
	struct screen *s, const struct view *v, const struct snapshot *snapshot, size_t shown)
{
	const struct rows *rows = &snapshot->by[v->by];
	size_t skip = v->first;

	if (!shown && v->by == ROWS_FIBER && !*v->filter)
		print_line(s, "no %s was sampled", runtime_fibers()->one);
	for (size_t i = 0; i < rows->count; i++) {
		if (s->lines && s->line >= s->lines)
			break;
		if (!row_matches(&rows->rows[i], v->filter))
			continue;
		if (skip)
			skip--;
		else
			screen_put_row(s, v->by, &rows->rows[i], snapshot);
	}
}

static void put_help(struct screen *s)
{
	const struct runtime_fibers *fibers = runtime_fibers();

	put_line(s, "", false);
	print_line(s, "p f g     processes, functions, %s (Tab: next)", fibers->many);
	put_line(s, "s r       sort by the next column; reverse the order", false);
	print_line(s, "/         filter: type part of a name, or a PID or %s ID", fibers->one);
	put_line(s, "Esc       clear the filter", false);
	put_line(s, "j k       down and up; also the arrow keys, Page Up and Down, Home, End",
		false);
	put_line(s, "Space     freeze the display; sampling goes on", false);
	put_line(s, "q         end", false);
	put_line(s, "", false);
	print_line(s, "Processes and %s: percent of one CPU, including kernel mode.", fibers->many);
	put_line(s, "Functions: share of all samples; total includes the functions they call.",
		false);
}

static void put_body(struct screen *s, struct view *v, struct snapshot *snapshot)
{
	struct rows none = { 0 }, *rows = snapshot ? &snapshot->by[v->by] : &none;
	size_t shown = count_shown(rows, v->filter);

	size_t head = HEAD_LINES + (s->facts->note ? 1 : 0);

	v->page = s->lines > head ? s->lines - head : 1;
	if (v->first + v->page > shown)
		v->first = shown > v->page && s->lines ? shown - v->page : 0;
	rows_order(rows, v->key, v->reverse);
	put_choice(s, v, shown, rows->count);
	put_column_names(s, v->by);
	if (snapshot)
		screen_put_rows(s, v, snapshot, shown);
}

int screen_draw(struct buffer *out, struct view *v, struct snapshot *snapshot,
	const struct screen_facts *facts, const struct screen_form *form)
{
	struct screen s = {
		.out = out,
		.facts = facts,
		.columns = form->columns ? form->columns : LONGEST_LINE,
		.lines = form->lines,
		.ansi = form->ansi,
	};

	/* Terminals differ in what they do after the last column: leave it empty. */
	if (form->columns > 1)
		s.columns--;
	buffer_string(out, s.ansi ? HOME : "");
	put_title(&s, snapshot);
	put_health(&s, snapshot);
	if (facts->note)
		put_line(&s, facts->note, false);
	if (v->help)
		put_help(&s);
	else
		put_body(&s, v, snapshot);
	/* Plain screens are separated by an empty line. */
	buffer_string(out, s.ansi ? CLEAR_REST : "\n\n");
	return out->error;
}
