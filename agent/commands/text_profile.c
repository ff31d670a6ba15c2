/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sample of `perf script` is a line about it, then a line for each frame, innermost first, and an
 * empty line:
 *
 *   my prog  1234/1235 [002] 12345.678901:    5025125 cpu-clock:u:
 *           7f0c1e2a3b40 memmove+0x20 (/usr/lib/libc.so.6)
 *
 * Without stacks the only frame is at the end of the first line, and no empty line follows. Which
 * fields there are depends on the options; what is missing is left out. All of a text is foreign:
 * its lines are looked at one by one, and only copied where they end.
 */
#include "agent/commands/text_profile.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "pprof/pprof.h"

enum {
	LOOK_BYTES = 512, /* of a file, to see whether it is a text */
	LINE_BYTES = 64 << 10, /* longer lines are cut */
	MAX_EVENTS = 8,
};

struct text_frame {
	const char *name; /* "" = unknown */
	const char *file;
	uint64_t address;
};

struct text_profile {
	const char *at, *end; /* what is left of the text */
	char line[LINE_BYTES];
	char events[MAX_EVENTS][64];
	size_t event_count;
	struct pprof *pprof; /* NULL: events are collected, frames and samples passed */
	uint64_t locations[PPROF_MAX_FRAMES]; /* of the current sample */
	size_t location_count;
	uint64_t samples;
	double first_s, last_s; /* times of samples; 0 = none */
};

/* The line about a sample, taken apart; texts are within the line. */
struct sample_line {
	char *comm, *event, *rest; /* "" = none */
	int64_t pid, tid, cpu; /* -1 = none */
	double time_s;
	int64_t period; /* 1 if there is none */
};

bool text_profile_is(const void *bytes, size_t size)
{
	const unsigned char *at = bytes;

	/* The first byte of a pprof message may be a newline; a text does not begin with one. */
	if (!size || at[0] == '\n' || !strncmp(bytes, "PERFILE2", MIN(size, (size_t)8)))
		return false;
	for (size_t i = 0; i < MIN(size, (size_t)LOOK_BYTES); i++) {
		if (at[i] == 0x7f || (at[i] < ' ' && !isspace(at[i])))
			return false;
	}
	return true;
}

/* The next line without its end; NULL after the last. */
static char *next_line(struct text_profile *t)
{
	const char *end;
	size_t size;

	if (t->at >= t->end)
		return NULL;
	end = memchr(t->at, '\n', (size_t)(t->end - t->at));
	size = (size_t)((end ? end : t->end) - t->at);
	size = MIN(size, (size_t)LINE_BYTES - 1);
	memcpy(t->line, t->at, size);
	t->line[size] = '\0';
	size = strlen(t->line);
	while (size && isspace((unsigned char)t->line[size - 1]))
		t->line[--size] = '\0';
	t->at = end ? end + 1 : t->end;
	return t->line;
}

static char *skip_space(char *text)
{
	return text + strspn(text, " \t");
}

/* ---- `perf script`: the line about a sample -------------------------------------------------- */

/* `12345.678901:` → true. */
static bool is_time(const char *token, size_t size, double *ret_s)
{
	char *end;

	if (size < 2 || token[size - 1] != ':' || !isdigit((unsigned char)*token))
		return false;
	*ret_s = strtod(token, &end);
	return end == token + size - 1;
}

/* `1234/1235` or `1235`; false if it is neither. */
static bool read_ids(const char *token, size_t size, struct sample_line *s)
{
	char *end;

	if (!isdigit((unsigned char)*token))
		return false;
	s->pid = s->tid = strtoll(token, &end, 10);
	if (*end == '/')
		s->tid = strtoll(end + 1, &end, 10);
	return end == token + size;
}

/* The place of the time in LINE; NULL without one. */
static char *find_time(char *line, size_t *ret_size, double *ret_s)
{
	for (char *at = skip_space(line); *at; at = skip_space(at)) {
		*ret_size = strcspn(at, " \t");
		if (is_time(at, *ret_size, ret_s))
			return at;
		at += *ret_size;
	}
	return NULL;
}

/* The last word before END, which is cut off there; NULL if there is none. */
static char *cut_last_word(char *begin, char *end)
{
	while (end > begin && isspace((unsigned char)end[-1]))
		*--end = '\0';
	while (end > begin && !isspace((unsigned char)end[-1]))
		end--;
	return *end ? end : NULL;
}

/* What stands before the time: comm, which may have blanks, ids, and the CPU in brackets. */
static void read_before_time(char *line, char *time, struct sample_line *s)
{
	char *word = cut_last_word(line, time);

	if (word && *word == '[' && word > line) {
		s->cpu = strtoll(word + 1, NULL, 10);
		word = cut_last_word(line, word);
	}
	if (word && word > line && read_ids(word, strlen(word), s)) {
		*word = '\0';
		(void)cut_last_word(line, word);
	}
	s->comm = line;
}

/* `5025125 cpu-clock:u: 401136 inner+0x14 (/tmp/spin)` */
static void read_after_time(char *text, struct sample_line *s)
{
	char *end;

	text = skip_space(text);
	if (isdigit((unsigned char)*text)) {
		int64_t period = strtoll(text, &end, 10);

		if (*end == ' ') {
			s->period = period > 0 ? period : 1;
			text = skip_space(end);
		}
	}
	end = text + strcspn(text, " \t");
	if (end == text || end[-1] != ':')
		return;
	s->event = text;
	s->rest = *end ? end + 1 : end;
	end[-1] = '\0';
	/* `cycles:u` and `cpu-clock:ppp` are the events cycles and cpu-clock. */
	end = strrchr(text, ':');
	if (end && strspn(end + 1, "ukhpPGHSDIeW") == strlen(end + 1))
		*end = '\0';
}

static bool read_sample_line(char *line, struct sample_line *s)
{
	size_t size;
	char *time;

	*s = (struct sample_line){
		.comm = line + strlen(line), .pid = -1, .tid = -1, .cpu = -1, .period = 1
	};
	s->event = s->rest = s->comm;
	time = find_time(line, &size, &s->time_s);
	if (!time)
		return false;
	read_after_time(time + size, s);
	read_before_time(line, time, s);
	return true;
}

/* ---- `perf script`: frames ------------------------------------------------------------------- */

/* `401136 inner+0x14 (/tmp/spin)`; false if it is no frame. */
static bool read_frame(char *text, struct text_frame *frame)
{
	char *end, *file, *offset;

	text = skip_space(text);
	frame->address = strtoull(text, &end, 16);
	if (end == text || *end != ' ')
		return false;
	text = skip_space(end);
	frame->name = text;
	frame->file = "";
	file = strrchr(text, '(');
	if (file && text[strlen(text) - 1] == ')') {
		text[strlen(text) - 1] = '\0';
		/* `inner (inlined)` is in the file of the frame that it is inlined in. */
		frame->file = strcmp(file + 1, "inlined") ? file + 1 : "";
		*file = '\0';
		(void)cut_last_word(text, file);
	}
	offset = strrchr(text, '+');
	if (offset && !strncmp(offset, "+0x", 3) &&
		strspn(offset + 3, "0123456789abcdef") == strlen(offset + 3))
		*offset = '\0';
	if (!strcmp(text, "[unknown]"))
		frame->name = "";
	return true;
}

static int add_location(struct text_profile *t, const struct text_frame *frame)
{
	const struct pprof_line line = {
		.name = frame->name, .system_name = frame->name, .file = ""
	};
	const struct pprof_mapping mapping = {
		.limit = UINT64_MAX, .file = frame->file, .build_id = ""
	};
	uint64_t number = 0;
	int err = 0;

	if (!t->pprof || t->location_count == PPROF_MAX_FRAMES)
		return 0;
	if (*frame->file)
		err = pprof_mapping(t->pprof, &mapping, &number);
	if (!err)
		err = pprof_location(t->pprof, number, frame->address, &line, *frame->name != 0,
			&t->locations[t->location_count]);
	if (!err)
		t->location_count++;
	return err;
}

/* ---- events ---------------------------------------------------------------------------------- */

static bool is_clock(const char *event)
{
	return strstr(event, "clock") != NULL;
}

/* The number of EVENT; a new one is added. MAX_EVENTS: there are too many. */
static size_t event_number(struct text_profile *t, const char *event)
{
	size_t number = 0;

	while (number < t->event_count && strcmp(t->events[number], event) != 0)
		number++;
	if (number == t->event_count && number < MAX_EVENTS && strlen(event) < sizeof(t->events[0]))
		snprintf(t->events[t->event_count++], sizeof(t->events[0]), "%s", event);
	return number;
}

static int begin_pprof(struct text_profile *t)
{
	struct pprof_options options = { .types = { { "samples", "count" } }, .type_count = 1 };

	for (size_t i = 0; i < t->event_count; i++)
		options.types[options.type_count++] =
			is_clock(t->events[i]) ? (struct pprof_type){ "cpu", "nanoseconds" }
					       : (struct pprof_type){ t->events[i], "count" };
	options.default_type = options.types[options.type_count - 1].type;
	options.period_type = options.types[options.type_count - 1];
	options.period = 1;
	return pprof_create(&options, &t->pprof);
}

/* ---- samples --------------------------------------------------------------------------------- */

static int add_sample(struct text_profile *t, const struct sample_line *s)
{
	struct pprof_label labels[4];
	size_t count = 0, event = event_number(t, s->event);
	int64_t values[MAX_EVENTS + 1] = { 1 };

	if (!t->pprof)
		return 0;
	if (*s->comm)
		labels[count++] = (struct pprof_label){ .key = "comm", .text = s->comm };
	if (s->pid > 0)
		labels[count++] =
			(struct pprof_label){ .key = "pid", .number = s->pid, .unit = "id" };
	if (s->tid > 0)
		labels[count++] =
			(struct pprof_label){ .key = "tid", .number = s->tid, .unit = "id" };
	if (s->cpu >= 0)
		labels[count++] =
			(struct pprof_label){ .key = "cpu", .number = s->cpu, .unit = "id" };
	if (event < t->event_count)
		values[1 + event] = s->period;
	t->samples++;
	t->first_s = t->first_s && t->first_s < s->time_s ? t->first_s : s->time_s;
	t->last_s = MAX(t->last_s, s->time_s);
	return pprof_sample(t->pprof, t->locations, t->location_count, values, labels, count);
}

/* perf could not walk some stacks at all, of guests for example. */
static int add_unknown(struct text_profile *t)
{
	const struct text_frame unknown = { .name = "[unknown]", .file = "" };

	return add_location(t, &unknown);
}

/* The lines of a stack, to the empty one behind it. */
static int read_stack(struct text_profile *t)
{
	struct text_frame frame;
	char *line;
	int err = 0;

	while (!err && (line = next_line(t)) != NULL && *line) {
		if (isspace((unsigned char)*line) && read_frame(line, &frame))
			err = add_location(t, &frame);
	}
	return err;
}

/* The frames of a sample; its own line is copied, since frames use the same memory. */
static int read_sample(struct text_profile *t, struct sample_line *s)
{
	autofree char *comm = strdup(s->comm), *event = strdup(s->event);
	struct text_frame frame;
	int err = comm && event ? 0 : -ENOMEM;

	t->location_count = 0;
	if (!err && *s->rest && read_frame(s->rest, &frame))
		err = add_location(t, &frame);
	else if (!err)
		err = read_stack(t);
	s->comm = comm;
	s->event = event;
	if (!err && !t->location_count)
		err = add_unknown(t);
	return err ? err : add_sample(t, s);
}

/* Without a pprof: finds the events only. */
static int read_perf_script(struct text_profile *t)
{
	struct sample_line s;
	char *line;
	int err = 0;

	while (!err && (line = next_line(t)) != NULL) {
		if (!*line || *line == '#' || !read_sample_line(skip_space(line), &s))
			continue;
		if (!t->pprof)
			(void)event_number(t, s.event);
		err = read_sample(t, &s);
	}
	return err;
}

/* ---- collapsed stacks ------------------------------------------------------------------------ */

/* `main;work;inner 12` → the place of the number; NULL if LINE is none. */
static char *find_count(char *line)
{
	char *space = strrchr(line, ' ');

	if (!space || space == line || !space[1] || space[1 + strspn(space + 1, "0123456789")])
		return NULL;
	return space;
}

static int read_collapsed_line(struct text_profile *t, char *line)
{
	struct text_frame frames[PPROF_MAX_FRAMES];
	int64_t values[1];
	char *space = find_count(line), *name;
	size_t count = 0;
	int err = 0;

	if (!space)
		return 0;
	values[0] = strtoll(space + 1, NULL, 10);
	*space = '\0';
	while ((name = strsep(&line, ";")) != NULL && count < PPROF_MAX_FRAMES)
		frames[count++] = (struct text_frame){ .name = *name ? name : "??", .file = "" };
	t->location_count = 0;
	while (!err && count)
		err = add_location(t, &frames[--count]);
	t->samples++;
	return err ? err : pprof_sample(t->pprof, t->locations, t->location_count, values, NULL, 0);
}

static int read_collapsed(struct text_profile *t)
{
	char *line;
	int err = begin_pprof(t);

	while (!err && (line = next_line(t)) != NULL)
		err = read_collapsed_line(t, line);
	return err;
}

/* Whether the first line with a sample ends in a count. */
static bool is_collapsed(struct text_profile *t)
{
	const char *begin = t->at;
	bool found = false;
	char *line;

	while ((line = next_line(t)) != NULL) {
		if (!*line || *line == '#')
			continue;
		found = find_count(line) != NULL;
		break;
	}
	t->at = begin;
	return found;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int read_all(struct text_profile *t)
{
	const char *begin = t->at;
	int err;

	if (is_collapsed(t))
		return read_collapsed(t);
	err = read_perf_script(t);
	if (err)
		return err;
	t->at = begin;
	err = begin_pprof(t);
	return err ? err : read_perf_script(t);
}

/* 0 = not known: the text may say any times. */
static int64_t duration_ns(const struct text_profile *t)
{
	static const double longest_s = 100.0 * 365 * 86400;
	double seconds = t->last_s - t->first_s;

	return seconds > 0 && seconds < longest_s ? (int64_t)(seconds * 1e9) : 0;
}

int text_profile_read(const void *text, size_t size, struct buffer *out, const char **ret_why)
{
	autofree struct text_profile *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return -ENOMEM;
	t->at = text;
	t->end = t->at + size;
	err = read_all(t);
	if (!err && !t->samples) {
		*ret_why = "a text, but neither `perf script` output nor collapsed stacks";
		err = -EBADMSG;
	}
	if (!err) {
		pprof_set_times(t->pprof, 1, 0, duration_ns(t));
		err = pprof_encode(t->pprof, true, out);
	}
	pprof_destroy(t->pprof);
	return err;
}
