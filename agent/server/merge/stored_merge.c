/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/merge/stored_merge.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/gzip.h"
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
	MAX_MINUTES = 16, /* of a file: bits of stored_merge_source */
	MORE_LABELS = 2,
	KEPT_LEVEL = 6, /* of gzip */
};

static const char FILE_LABEL[] = "fathom_file", MINUTE_LABEL[] = "fathom_minute";
static const char GROUP_LABEL[] = "fathom_group", ID_UNIT[] = "id";
/* What agent/daemon/windows.c says, and the page reads. */
static const char LOST[] = "samples lost since the window before: ";
static const char MEAN_PERIOD[] =
	"the sampling frequency was not always the same: the period is the mean of the samples'";

static const int64_t MINUTE_NS = INT64_C(60000000000);

struct stored_merge {
	struct stored_merge_options options;
	struct pprof *pprof; /* NULL until the first profile */
	struct pprof_type types[PPROF_MAX_TYPES]; /* texts are in `texts` */
	size_t type_count;
	struct intern texts; /* of types */
	struct intern told; /* comments */
	struct intern unread; /* paths */
	struct pprof_span span;
	size_t files; /* by file: minutes count each; by slice: slices */
	uint64_t slice_ms; /* the last one */
	uint64_t lost; /* samples, as the files say; by slice: those of the last one */
	int64_t period; /* of the files so far */
	bool period_varies;
	int64_t count, time_ns; /* of the types samples/count and cpu/nanoseconds */
};

/* A file on its way into the merge. */
struct stored_file {
	struct stored_merge *merge;
	const struct stored_merge_source *source;
	const struct pprof_read *from;
	/* Strings of the file: the keys of these labels; -1 = no sample has it. */
	int64_t key_comm, key_container, key_group, key_minute, unit_id;
	size_t first; /* number of its first minute, or its own */
	struct pprof_copy copy;
	size_t types[PPROF_MAX_TYPES]; /* numbers of its types in the merge */
	bool counts[PPROF_MAX_TYPES], times[PPROF_MAX_TYPES]; /* what its types are */
	size_t type_count;
	struct stored_labels *sets; /* what its sets of labels become, by number */
};

/* A set of labels of a file, as it is in the merge. */
struct stored_labels {
	bool known; /* the rest is set: at the first sample that has these labels */
	bool wanted; /* are its samples? */
	uint32_t labels; /* its number in the merge, if they are */
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

		f->counts[f->type_count] = !strcmp(type.type, "samples");
		f->times[f->type_count] = !strcmp(type.type, "cpu");
		err = stored_merge_type(f->merge, &type, &f->types[f->type_count]);
	}
	return err;
}

/* ---- whose ---------------------------------------------------------------------------------- */

static void stored_file_find_keys(struct stored_file *f)
{
	const MESSAGE(Profile) *p = f->from->message;

	f->key_comm = f->key_container = f->key_group = f->key_minute = f->unit_id = -1;
	for (size_t i = 0; i < p->n_string_table; i++) {
		const char *text = p->string_table[i];
		int64_t *key = !strcmp(text, "comm")           ? &f->key_comm
			       : !strcmp(text, "container_id") ? &f->key_container
			       : !strcmp(text, GROUP_LABEL)    ? &f->key_group
			       : !strcmp(text, MINUTE_LABEL)   ? &f->key_minute
			       : !strcmp(text, ID_UNIT)        ? &f->unit_id
							       : NULL;

		if (key && *key < 0)
			*key = (int64_t)i;
	}
}

/* Labels of a sample, as its file has them. */
struct stored_set {
	const struct pprof_sample_label *labels;
	size_t count;
};

static const struct pprof_sample_label *stored_set_label(const struct stored_set *set, int64_t key)
{
	for (size_t i = 0; i < set->count && key > 0; i++) {
		if (set->labels[i].key == key)
			return &set->labels[i];
	}
	return NULL;
}

static const char *stored_file_text(
	const struct stored_file *f, const struct stored_set *set, int64_t key)
{
	const struct pprof_sample_label *label = stored_set_label(set, key);

	return label ? pprof_read_text(f->from, label->str) : "";
}

static const char *stored_file_group(const struct stored_file *f, const struct stored_set *set)
{
	const char *group = stored_file_text(f, set, f->key_group);

	return *group ? group : f->source->group;
}

static bool stored_merge_is_container(const char *id, const char *wanted)
{
	size_t length = strlen(wanted);

	return length >= SHORT_CONTAINER_ID ? !strncmp(id, wanted, length) : !strcmp(id, wanted);
}

static bool stored_file_is_wanted(const struct stored_file *f, const struct stored_set *set)
{
	const struct stored_merge_options *o = &f->merge->options;

	if (o->comm && *o->comm &&
		strncmp(stored_file_text(f, set, f->key_comm), o->comm, COMM_BYTES) != 0)
		return false;
	if (o->group && *o->group && strcmp(stored_file_group(f, set), o->group) != 0)
		return false;
	return !o->container || !*o->container ||
	       stored_merge_is_container(stored_file_text(f, set, f->key_container), o->container);
}

/* The minute of samples, from 0 on. False if that is not wanted. */
static bool stored_file_minute(
	const struct stored_file *f, const struct stored_set *set, unsigned int *ret_minute)
{
	const struct pprof_sample_label *label;

	*ret_minute = f->source->minute;
	if (!f->source->all_minutes || stored_merge_replaces(f->merge->options.form))
		return true;
	label = stored_set_label(set, f->key_minute);
	if (!label || label->num < 1 || label->num > MAX_MINUTES)
		return false;
	*ret_minute = (unsigned int)label->num - 1;
	return f->source->minutes >> *ret_minute & 1;
}

/* ---- labels --------------------------------------------------------------------------------- */

/* What is of an hour or more: processes and threads have ended. */
static bool stored_merge_drops_ids(enum stored_merge_form form)
{
	return stored_merge_replaces(form) || form == STORED_MERGE_BY_SLICE;
}

/* Whether the merge has a label of the file's samples, too. */
static bool stored_file_keeps(const struct stored_file *f, const struct pprof_sample_label *label)
{
	enum stored_merge_form form = f->merge->options.form;

	if (label->key == f->key_minute)
		return false;
	if (label->key == f->key_group)
		return form != STORED_MERGE_SUM;
	return !stored_merge_drops_ids(form) || label->str || label->num_unit != f->unit_id;
}

static int stored_file_labels(struct stored_file *f, const struct stored_set *set,
	struct pprof_label labels[PPROF_MAX_LABELS], size_t *ret_count)
{
	int err = 0;

	*ret_count = 0;
	for (size_t i = 0; i < set->count && !err; i++) {
		const struct pprof_sample_label *label = &set->labels[i];

		if (stored_file_keeps(f, label))
			err = pprof_copy_label(&f->copy, label, &labels[(*ret_count)++]);
	}
	return err;
}

/* The number of a file, or of the minute of one. */
static int64_t stored_file_number(const struct stored_file *f, unsigned int minute)
{
	unsigned int before = f->source->minutes & ((1U << minute) - 1);

	if (f->merge->options.form == STORED_MERGE_BY_SLICE || !f->source->all_minutes)
		return (int64_t)f->first;
	return (int64_t)f->first + __builtin_popcount(before);
}

/* Adds what the form of the merge says of samples. */
static size_t stored_file_more_labels(const struct stored_file *f, const struct stored_set *set,
	unsigned int minute, struct pprof_label labels[PPROF_MAX_LABELS], size_t count)
{
	enum stored_merge_form form = f->merge->options.form;

	if (form != STORED_MERGE_SUM && *f->source->group && !stored_set_label(set, f->key_group))
		labels[count++] =
			(struct pprof_label){ .key = GROUP_LABEL, .text = f->source->group };
	if (stored_merge_keeps_apart(form))
		labels[count++] = (struct pprof_label){
			.key = FILE_LABEL, .number = stored_file_number(f, minute), .unit = ID_UNIT
		};
	if (form == STORED_MERGE_MINUTES)
		labels[count++] = (struct pprof_label){
			.key = MINUTE_LABEL, .number = (int64_t)minute + 1, .unit = ID_UNIT
		};
	return count;
}

static int stored_file_make_labels(
	struct stored_file *f, const struct stored_set *set, struct stored_labels *ret_labels)
{
	struct pprof_label labels[PPROF_MAX_LABELS];
	size_t count = 0;
	unsigned int minute;
	int err;

	ret_labels->known = true;
	ret_labels->wanted = stored_file_is_wanted(f, set) && stored_file_minute(f, set, &minute);
	if (!ret_labels->wanted)
		return 0;
	err = stored_file_labels(f, set, labels, &count);
	if (err)
		return err;
	count = stored_file_more_labels(f, set, minute, labels, count);
	return pprof_labels(f->merge->pprof, labels, count, &ret_labels->labels);
}

/* What becomes of set NUMBER, which many samples have. */
static int stored_file_set(
	struct stored_file *f, uint32_t number, const struct stored_labels **ret_labels)
{
	const struct pprof_samples *s = &f->from->samples;
	const struct pprof_sample_part *part = &s->sets[number];
	const struct stored_set set = { s->labels + part->first, part->count };
	struct stored_labels *labels = &f->sets[number];

	*ret_labels = labels;
	return labels->known ? 0 : stored_file_make_labels(f, &set, labels);
}

/* ---- samples -------------------------------------------------------------------------------- */

static void stored_merge_sum(int64_t *sum, int64_t value)
{
	if (__builtin_add_overflow(*sum, value, sum))
		*sum = INT64_MAX;
}

static void stored_file_values(
	const struct stored_file *f, const int64_t *from, int64_t values[PPROF_MAX_TYPES])
{
	memset(values, 0, PPROF_MAX_TYPES * sizeof(*values));
	for (size_t i = 0; i < f->type_count; i++) {
		const int64_t value = from[i];

		values[f->types[i]] = value;
		if (f->counts[i])
			stored_merge_sum(&f->merge->count, value);
		if (f->times[i])
			stored_merge_sum(&f->merge->time_ns, value);
	}
}

static int stored_file_stack(struct stored_file *f, uint32_t number, uint32_t *ret_stack)
{
	const struct pprof_samples *s = &f->from->samples;
	const struct pprof_sample_part *part = &s->stacks[number];
	uint64_t stack[PPROF_MAX_FRAMES];
	int err = pprof_copy_locations(&f->copy, s->locations + part->first, part->count, stack);

	return err ? err : pprof_stack(f->merge->pprof, stack, part->count, ret_stack);
}

/* Adds the wanted samples. Neighbours mostly have the same stack. */
static int stored_file_add_rows(struct stored_file *f)
{
	const struct pprof_samples *s = &f->from->samples;
	uint32_t last = UINT32_MAX, stack = 0;
	int64_t values[PPROF_MAX_TYPES];
	const struct stored_labels *set;
	int err = 0;

	for (size_t i = 0; i < s->count && !err; i++) {
		const struct pprof_sample_row *row = &s->rows[i];

		err = stored_file_set(f, row->labels, &set);
		if (err || !set->wanted)
			continue;
		if (row->stack != last)
			err = stored_file_stack(f, row->stack, &stack);
		last = row->stack;
		stored_file_values(f, pprof_samples_values(s, i), values);
		if (!err)
			err = pprof_sample_of(f->merge->pprof, stack, set->labels, values);
	}
	return err;
}

/* Whether all of its samples are wanted. */
static bool stored_file_is_whole(const struct stored_file *f)
{
	const struct stored_merge_options *o = &f->merge->options;

	return f->source->minutes == f->source->all_minutes && !(o->comm && *o->comm) &&
	       !(o->group && *o->group) && !(o->container && *o->container);
}

static int stored_file_add_samples(struct stored_file *f)
{
	int err = pprof_copy_init(&f->copy, f->merge->pprof, f->from);

	f->sets = calloc(f->from->samples.set_count, sizeof(*f->sets));
	if (!err && !f->sets)
		err = -ENOMEM;
	if (!err && stored_file_is_whole(f))
		err = pprof_copy_all(&f->copy);
	if (!err)
		err = stored_file_add_rows(f);
	pprof_copy_deinit(&f->copy);
	free(take(f->sets));
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

/* Files that become one say together how many samples were lost. */
static bool stored_merge_took_loss(struct stored_merge *m, const char *comment)
{
	char *end;
	uint64_t lost;

	if (m->options.form == STORED_MERGE_SUM || strncmp(comment, LOST, sizeof(LOST) - 1) != 0)
		return false;
	lost = strtoull(comment + sizeof(LOST) - 1, &end, 10);
	if (*end || __builtin_add_overflow(m->lost, lost, &lost))
		return false;
	m->lost = lost;
	return true;
}

static int stored_file_tell_comments(const struct stored_file *f)
{
	const enum stored_merge_form form = f->merge->options.form;
	const MESSAGE(Profile) *p = f->from->message;
	char text[COMMENT_BYTES];
	int err = 0;

	for (size_t i = 0; i < p->n_comment && !err; i++) {
		const char *comment = pprof_read_text(f->from, p->comment[i]);

		snprintf(text, sizeof(text), "comment %s", comment);
		if (form == STORED_MERGE_BY_FILE)
			err = pprof_comment(f->merge->pprof, text);
		else if (!stored_merge_took_loss(f->merge, comment))
			err = stored_merge_tell(
				f->merge, form == STORED_MERGE_BY_SLICE ? text : comment);
	}
	return err;
}

static int stored_file_tell_name(const struct stored_file *f, const char *name)
{
	char text[COMMENT_BYTES];

	f->merge->files++;
	snprintf(text, sizeof(text), "file %" PRId64 " %.64s %s", f->from->message->period,
		stored_file_main_type(f), name);
	return pprof_comment(f->merge->pprof, text);
}

/* Calls EACH with the name of SOURCE, or with those of its minutes that are wanted. */
static int stored_merge_each_name(const struct stored_merge_source *source, void *context,
	int (*each)(void *context, unsigned int number, const char *name))
{
	char name[COMMENT_BYTES];
	unsigned int number = 0;
	int err = 0;

	if (!source->all_minutes)
		return each(context, 0, source->path);
	for (unsigned int i = 0; i < MAX_MINUTES && !err; i++) {
		if (!(source->minutes >> i & 1))
			continue;
		snprintf(name, sizeof(name), "%s#%u", source->path, i + 1);
		err = each(context, number++, name);
	}
	return err;
}

/* What a file of minutes says, its first minute says. */
static int stored_file_tell_each(void *context, unsigned int number, const char *name)
{
	const struct stored_file *f = context;
	int err = stored_file_tell_name(f, name);

	return err || number ? err : stored_file_tell_comments(f);
}

/* How many samples were lost, of all the files or of the slice that ends. */
static int stored_merge_tell_lost(struct stored_merge *m)
{
	char text[COMMENT_BYTES];

	if (!m->lost)
		return 0;
	snprintf(text, sizeof(text), "%s%s%" PRIu64,
		m->options.form == STORED_MERGE_BY_SLICE ? "comment " : "", LOST, m->lost);
	m->lost = 0;
	return pprof_comment(m->pprof, text);
}

static int stored_file_tell_slice(struct stored_file *f)
{
	struct stored_merge *m = f->merge;
	char name[COMMENT_BYTES];
	int err = 0;

	if (!m->files || m->slice_ms != f->source->slice_ms) {
		m->slice_ms = f->source->slice_ms;
		snprintf(name, sizeof(name), "slice/%" PRIu64, m->slice_ms);
		err = stored_merge_tell_lost(m) ?: stored_file_tell_name(f, name);
	}
	f->first = m->files;
	return err ? err : stored_file_tell_comments(f);
}

static int stored_file_tell(struct stored_file *f)
{
	if (f->merge->options.form == STORED_MERGE_BY_SLICE)
		return stored_file_tell_slice(f);
	f->first = f->merge->files + 1;
	if (f->merge->options.form == STORED_MERGE_BY_FILE)
		return stored_merge_each_name(f->source, f, stored_file_tell_each);
	f->merge->files++;
	return stored_file_tell_comments(f);
}

static int stored_merge_unread_name(void *context, unsigned int number, const char *name)
{
	struct stored_merge *m = context;
	uint32_t ignored;

	(void)number;
	return intern_string(&m->unread, name, &ignored);
}

int stored_merge_unread(struct stored_merge *m, const struct stored_merge_source *source)
{
	if (m->options.form == STORED_MERGE_BY_SLICE)
		return stored_merge_unread_name(m, 0, source->path);
	return stored_merge_each_name(source, m, stored_merge_unread_name);
}

static int stored_merge_tell_unread(const struct stored_merge *m)
{
	char text[COMMENT_BYTES];
	size_t count = m->unread.count - 1;
	int err = 0;

	if (count && !stored_merge_keeps_apart(m->options.form)) {
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
static bool stored_merge_fits(const struct pprof_read *profile)
{
	const MESSAGE(Profile) *p = profile->message;

	if (profile->samples.most_locations > PPROF_MAX_FRAMES ||
		profile->samples.most_labels > PPROF_MAX_LABELS - MORE_LABELS)
		return false;
	for (size_t i = 0; i < p->n_location; i++) {
		if (p->location[i]->n_line > PPROF_MAX_LINES)
			return false;
	}
	return true;
}

/* The time that the wanted minutes cover, as a part of the file's. */
static int stored_file_cover(struct stored_file *f)
{
	MESSAGE(Profile) part = *f->from->message;
	unsigned int wanted = f->source->minutes & f->source->all_minutes;

	if (f->source->all_minutes && wanted && wanted != f->source->all_minutes) {
		int64_t skipped_ns = __builtin_ctz(wanted) * MINUTE_NS;

		part.duration_nanos = part.duration_nanos /
				      __builtin_popcount(f->source->all_minutes) *
				      __builtin_popcount(wanted);
		if (__builtin_add_overflow(part.time_nanos, skipped_ns, &part.time_nanos))
			return 0;
	}
	return pprof_span_add(&f->merge->span, &part);
}

int stored_merge_add(struct stored_merge *m, const struct stored_merge_source *source,
	const struct pprof_read *profile)
{
	struct stored_file f = { .merge = m, .source = source, .from = profile };
	int err;

	if (!stored_merge_fits(profile))
		return stored_merge_replaces(m->options.form) ? -E2BIG
							      : stored_merge_unread(m, source);
	stored_file_find_keys(&f);
	err = m->pprof ? 0 : stored_merge_begin(&f);
	m->period_varies |= m->period != profile->message->period;
	if (!err)
		err = stored_file_match_types(&f);
	if (!err)
		err = stored_file_tell(&f);
	if (!err)
		err = stored_file_add_samples(&f);
	return err ? err : stored_file_cover(&f);
}

size_t stored_merge_samples(const struct stored_merge *m)
{
	return m->pprof ? pprof_sample_count(m->pprof) : 0;
}

/* For what is kept for days: half the size, for a third more of CPU time. */
static int stored_merge_encode_small(struct stored_merge *m, struct buffer *out)
{
	autocall(buffer_deinit) struct buffer plain;
	int err = pprof_sort(m->pprof);

	buffer_init(&plain, m->options.limit_bytes);
	if (!err)
		err = pprof_encode(m->pprof, false, &plain);
	return err ? err : gzip_deflate(plain.bytes, plain.size, KEPT_LEVEL, out);
}

int stored_merge_encode(struct stored_merge *m, struct buffer *out)
{
	static const struct pprof_options nothing = { 0 };
	int64_t period = m->period;
	int err = m->pprof ? 0 : pprof_create(&nothing, &m->pprof);

	if (!err)
		err = stored_merge_tell_lost(m) ?: stored_merge_tell_unread(m);
	if (!err && m->period_varies && m->count > 0) {
		period = m->time_ns / m->count;
		err = stored_merge_keeps_apart(m->options.form)
			      ? 0
			      : pprof_comment(m->pprof, MEAN_PERIOD);
	}
	if (err)
		return err;
	pprof_set_times(m->pprof, period, m->span.begin_ns, m->span.covered_ns);
	return stored_merge_replaces(m->options.form) ? stored_merge_encode_small(m, out)
						      : pprof_encode(m->pprof, true, out);
}
