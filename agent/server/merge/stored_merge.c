/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/merge/stored_merge.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/intern.h"
#include "pprof/pprof_copy.h"

#define MESSAGE(name) Perftools__Profiles__##name

enum {
	FALLBACK_LIMIT_BYTES = 64 << 20,
	COMM_BYTES = 15, /* what the kernel keeps of a thread's name */
	SHORT_CONTAINER_ID = 12,
	COMMENT_BYTES = 512,
	MAX_TOLD = 256, /* distinct comments of files, where they are summed */
	MAX_TOLD_BYTES = 1 << 20,
	MAX_UNREAD = 1 << 16,
	MAX_UNREAD_BYTES = 16 << 20,
};

static const char FILE_LABEL[] = "fathom_file";
static const char MEAN_PERIOD[] =
	"the sampling frequency was not always the same: the period is the mean of the samples'";

struct stored_merge {
	struct stored_merge_options options;
	struct pprof *pprof; /* NULL until the first profile */
	struct pprof_type types[PPROF_MAX_TYPES]; /* texts are in `texts` */
	size_t type_count;
	struct intern texts; /* of types */
	struct intern told; /* comments */
	struct intern unread; /* paths */
	struct pprof_span span;
	size_t files;
	int64_t period; /* of the files so far */
	bool period_varies;
	int64_t count, time_ns; /* of the types samples/count and cpu/nanoseconds */
};

/* A file on its way into the merge. */
struct stored_file {
	struct stored_merge *merge;
	const struct pprof_read *from;
	struct pprof_copy copy;
	size_t types[PPROF_MAX_TYPES]; /* numbers of its types in the merge */
	size_t type_count;
};

int stored_merge_create(const struct stored_merge_options *options, struct stored_merge **ret_merge)
{
	struct stored_merge *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return -ENOMEM;
	m->options = *options;
	if (!m->options.limit_bytes)
		m->options.limit_bytes = FALLBACK_LIMIT_BYTES;
	pprof_span_init(&m->span);
	err = intern_init(&m->texts, 2 * PPROF_MAX_TYPES + 1, MAX_TOLD_BYTES) ?:
			intern_init(&m->told, MAX_TOLD, MAX_TOLD_BYTES) ?:
				intern_init(&m->unread, MAX_UNREAD, MAX_UNREAD_BYTES);
	if (err) {
		stored_merge_destroy(m);
		return err;
	}
	*ret_merge = m;
	return 0;
}

void stored_merge_destroy(struct stored_merge *m)
{
	if (!m)
		return;
	pprof_destroy(m->pprof);
	pprof_span_deinit(&m->span);
	intern_deinit(&m->texts);
	intern_deinit(&m->told);
	intern_deinit(&m->unread);
	free(m);
}

/* ---- types ---------------------------------------------------------------------------------- */

static int stored_merge_keep_type(struct stored_merge *m, const struct pprof_type *type)
{
	uint32_t name, unit;
	int err = intern_string(&m->texts, type->type, &name)
			  ?: intern_string(&m->texts, type->unit, &unit);

	if (err)
		return err;
	m->types[m->type_count++] = (struct pprof_type){
		intern_text(&m->texts, name),
		intern_text(&m->texts, unit),
	};
	return 0;
}

static struct pprof_type stored_file_type(
	const struct stored_file *f, const MESSAGE(ValueType) * type)
{
	return (struct pprof_type){
		pprof_read_text(f->from, type->type),
		pprof_read_text(f->from, type->unit),
	};
}

/* Finds or adds TYPE. */
static int stored_merge_type(
	struct stored_merge *m, const struct pprof_type *type, size_t *ret_number)
{
	size_t number;
	int err;

	for (size_t i = 0; i < m->type_count; i++) {
		if (!strcmp(m->types[i].type, type->type) &&
			!strcmp(m->types[i].unit, type->unit)) {
			*ret_number = i;
			return 0;
		}
	}
	err = pprof_add_type(m->pprof, type, &number) ?: stored_merge_keep_type(m, type);
	if (err)
		return err;
	*ret_number = number;
	return 0;
}

/* The type that tools show first: the default if it says one, else the last. */
static const char *stored_file_main_type(const struct stored_file *f)
{
	const MESSAGE(Profile) *p = f->from->message;
	const char *main = pprof_read_text(f->from, p->default_sample_type), *type = "";

	for (size_t i = 0; i < p->n_sample_type; i++) {
		type = pprof_read_text(f->from, p->sample_type[i]->type);
		if (!strcmp(type, main))
			break;
	}
	return type;
}

/* The merge is headed as its first file is. */
static int stored_merge_begin(const struct stored_file *f)
{
	const MESSAGE(Profile) *p = f->from->message;
	struct pprof_options head = { .limit_bytes = f->merge->options.limit_bytes };

	head.default_type = stored_file_main_type(f);
	if (p->period_type)
		head.period_type = stored_file_type(f, p->period_type);
	f->merge->period = p->period;
	return pprof_create(&head, &f->merge->pprof);
}

static int stored_file_match_types(struct stored_file *f)
{
	const MESSAGE(Profile) *p = f->from->message;
	int err = 0;

	if (p->n_sample_type > PPROF_MAX_TYPES)
		return -E2BIG;
	for (; f->type_count < p->n_sample_type && !err; f->type_count++) {
		const struct pprof_type type = stored_file_type(f, p->sample_type[f->type_count]);

		err = stored_merge_type(f->merge, &type, &f->types[f->type_count]);
	}
	return err;
}

/* ---- whose ---------------------------------------------------------------------------------- */

static const char *stored_file_label(
	const struct stored_file *f, const MESSAGE(Sample) * sample, const char *key)
{
	for (size_t i = 0; i < sample->n_label; i++) {
		if (!strcmp(pprof_read_text(f->from, sample->label[i]->key), key))
			return pprof_read_text(f->from, sample->label[i]->str);
	}
	return "";
}

static bool stored_merge_is_wanted(const struct stored_file *f, const MESSAGE(Sample) * sample)
{
	const struct stored_merge_options *o = &f->merge->options;

	if (o->comm && *o->comm &&
		strncmp(stored_file_label(f, sample, "comm"), o->comm, COMM_BYTES) != 0)
		return false;
	if (o->container && *o->container) {
		const char *id = stored_file_label(f, sample, "container_id");
		size_t length = strlen(o->container);

		return length >= SHORT_CONTAINER_ID ? !strncmp(id, o->container, length)
						    : !strcmp(id, o->container);
	}
	return true;
}

/* ---- samples -------------------------------------------------------------------------------- */

static void stored_merge_sum(int64_t *sum, int64_t value)
{
	if (__builtin_add_overflow(*sum, value, sum))
		*sum = INT64_MAX;
}

static void stored_file_values(const struct stored_file *f, const MESSAGE(Sample) * sample,
	int64_t values[PPROF_MAX_TYPES])
{
	memset(values, 0, PPROF_MAX_TYPES * sizeof(*values));
	for (size_t i = 0; i < f->type_count; i++) {
		const struct pprof_type *type = &f->merge->types[f->types[i]];

		values[f->types[i]] = sample->value[i];
		if (!strcmp(type->type, "samples"))
			stored_merge_sum(&f->merge->count, sample->value[i]);
		if (!strcmp(type->type, "cpu"))
			stored_merge_sum(&f->merge->time_ns, sample->value[i]);
	}
}

static int stored_file_add_sample(struct stored_file *f, const MESSAGE(Sample) * sample)
{
	struct pprof_label labels[PPROF_MAX_LABELS];
	uint64_t stack[PPROF_MAX_FRAMES];
	int64_t values[PPROF_MAX_TYPES];
	size_t depth, label_count;
	int err = pprof_copy_stack(&f->copy, sample, 0, stack, &depth);

	if (err)
		return err;
	stored_file_values(f, sample, values);
	label_count = pprof_copy_labels(&f->copy, sample, labels);
	if (f->merge->options.by_file) {
		labels[label_count++] = (struct pprof_label){
			.key = FILE_LABEL,
			.number = (int64_t)f->merge->files,
			.unit = "id",
		};
	}
	return pprof_sample(f->merge->pprof, stack, depth, values, labels, label_count);
}

static int stored_file_add_samples(struct stored_file *f)
{
	const MESSAGE(Profile) *p = f->from->message;
	int err = pprof_copy_init(&f->copy, f->merge->pprof, f->from);

	for (size_t i = 0; i < p->n_sample && !err; i++) {
		if (stored_merge_is_wanted(f, p->sample[i]))
			err = stored_file_add_sample(f, p->sample[i]);
	}
	pprof_copy_deinit(&f->copy);
	return err;
}

/* ---- comments ------------------------------------------------------------------------------- */

/* Each text is told once; beyond the limit they are left out. */
static int stored_merge_tell(struct stored_merge *m, const char *text)
{
	size_t known = m->told.count;
	uint32_t number;
	int err = intern_string(&m->told, text, &number);

	if (err == -E2BIG || number < known)
		return 0;
	return err ? err : pprof_comment(m->pprof, text);
}

static int stored_file_tell(const struct stored_file *f, const char *path)
{
	const MESSAGE(Profile) *p = f->from->message;
	char text[COMMENT_BYTES];
	int err = 0;

	if (f->merge->options.by_file) {
		snprintf(text, sizeof(text), "file %" PRId64 " %.64s %s", p->period,
			stored_file_main_type(f), path);
		err = pprof_comment(f->merge->pprof, text);
	}
	for (size_t i = 0; i < p->n_comment && !err; i++) {
		const char *comment = pprof_read_text(f->from, p->comment[i]);

		if (!f->merge->options.by_file) {
			err = stored_merge_tell(f->merge, comment);
			continue;
		}
		snprintf(text, sizeof(text), "comment %s", comment);
		err = pprof_comment(f->merge->pprof, text);
	}
	return err;
}

int stored_merge_unread(struct stored_merge *m, const char *path)
{
	uint32_t number;

	return intern_string(&m->unread, path, &number);
}

static int stored_merge_tell_unread(const struct stored_merge *m)
{
	char text[COMMENT_BYTES];
	size_t count = m->unread.count - 1;
	int err = 0;

	if (count && !m->options.by_file) {
		snprintf(text, sizeof(text), "%zu stored profiles could not be read", count);
		return pprof_comment(m->pprof, text);
	}
	for (uint32_t i = 1; i <= count && !err; i++) {
		snprintf(text, sizeof(text), "unread %s", intern_text(&m->unread, i));
		err = pprof_comment(m->pprof, text);
	}
	return err;
}

/* ---- profiles ------------------------------------------------------------------------------- */

/* Whether all of it fits into what is built: nothing is cut off silently. No agent writes more. */
static bool stored_merge_fits(const struct stored_merge *m, const MESSAGE(Profile) * p)
{
	const size_t labels = PPROF_MAX_LABELS - (m->options.by_file ? 1 : 0);

	for (size_t i = 0; i < p->n_sample; i++) {
		if (p->sample[i]->n_location_id > PPROF_MAX_FRAMES ||
			p->sample[i]->n_label > labels)
			return false;
	}
	for (size_t i = 0; i < p->n_location; i++) {
		if (p->location[i]->n_line > PPROF_MAX_LINES)
			return false;
	}
	return true;
}

int stored_merge_add(struct stored_merge *m, const char *path, const struct pprof_read *profile)
{
	struct stored_file f = { .merge = m, .from = profile };
	int err;

	if (!stored_merge_fits(m, profile->message))
		return stored_merge_unread(m, path);
	err = m->pprof ? 0 : stored_merge_begin(&f);
	m->files++;
	m->period_varies |= m->period != profile->message->period;
	if (!err)
		err = stored_file_match_types(&f);
	if (!err)
		err = stored_file_tell(&f, path);
	if (!err)
		err = stored_file_add_samples(&f);
	return err ? err : pprof_span_add(&m->span, profile->message);
}

int stored_merge_encode(struct stored_merge *m, struct buffer *out)
{
	static const struct pprof_options nothing = { 0 };
	int64_t period = m->period;
	int err = m->pprof ? 0 : pprof_create(&nothing, &m->pprof);

	if (!err)
		err = stored_merge_tell_unread(m);
	if (!err && m->period_varies && m->count > 0) {
		period = m->time_ns / m->count;
		err = m->options.by_file ? 0 : pprof_comment(m->pprof, MEAN_PERIOD);
	}
	if (err)
		return err;
	pprof_set_times(m->pprof, period, m->span.begin_ns, m->span.covered_ns);
	return pprof_encode(m->pprof, true, out);
}
