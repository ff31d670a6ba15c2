/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/pprof.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "pprof/records.h"

enum {
	DEFAULT_LIMIT_BYTES = 256 << 20,
	MAX_RECORDS = 1 << 26, /* of each kind; the memory limit comes first */
	INTERN_ENTRY_BYTES = 24, /* what base/intern.c stores per entry besides its bytes */
	INTERN_SLOT_BYTES = 8,
};

DEFINE_AUTO(pprof);

static size_t intern_bytes_held(const struct intern *in)
{
	return in->bytes.total_bytes + in->capacity * INTERN_ENTRY_BYTES +
	       in->slot_count * INTERN_SLOT_BYTES;
}

size_t pprof_bytes(const struct pprof *p)
{
	return sizeof(*p) + intern_bytes_held(&p->strings) + intern_bytes_held(&p->mappings) +
	       intern_bytes_held(&p->functions) + intern_bytes_held(&p->locations) +
	       intern_bytes_held(&p->stacks) + intern_bytes_held(&p->label_sets) +
	       intern_bytes_held(&p->samples) + p->facts_capacity * sizeof(*p->facts) +
	       p->comment_capacity * sizeof(*p->comments) + p->values_capacity * sizeof(*p->values);
}

static size_t cut_length(const char *text)
{
	size_t size = strnlen(text, PPROF_MAX_STRING + 1);

	if (size <= PPROF_MAX_STRING)
		return size;
	/* Do not cut inside a character: step back over its continuation bytes. */
	size = PPROF_MAX_STRING;
	while (size > PPROF_MAX_STRING - 4 && ((uint8_t)text[size] & 0xc0) == 0x80)
		size--;
	return size;
}

static int add_string(struct pprof *p, const char *text, uint32_t *ret_string)
{
	autofree char *clean = NULL;
	size_t size;

	if (!text || !*text) {
		*ret_string = 0;
		return 0;
	}
	size = cut_length(text);
	if (utf8_is_clean(text, size))
		return intern_bytes(&p->strings, text, size, ret_string);
	clean = strndup(text, size);
	if (!clean)
		return -ENOMEM;
	utf8_clean(clean, size);
	return intern_bytes(&p->strings, clean, size, ret_string);
}

int pprof_string(struct pprof *p, const char *text, uint32_t *ret_string)
{
	return add_string(p, text, ret_string);
}

/* The string TEXT, whose number is STRING unless that is 0. */
static int known_string(struct pprof *p, const char *text, uint32_t string, uint32_t *ret_string)
{
	if (!string)
		return add_string(p, text, ret_string);
	*ret_string = string;
	return string < p->strings.count ? 0 : -ENOENT;
}

/* Like add_string(), but first compares TEXT with string *GUESS; sets *GUESS to its number. */
static int add_string_again(struct pprof *p, const char *text, uint32_t *guess)
{
	if (text && !strcmp(intern_text(&p->strings, *guess), text))
		return 0;
	return add_string(p, text, guess);
}

static int add_type(struct pprof *p, const struct pprof_type *type, struct type_strings *ret_type)
{
	int err;

	err = add_string(p, type->type, &ret_type->type);
	if (err)
		return err;
	return add_string(p, type->unit, &ret_type->unit);
}

static int add_types(struct pprof *p, const struct pprof_options *options)
{
	int err;

	if (options->type_count > PPROF_MAX_TYPES)
		return -E2BIG;
	p->type_count = options->type_count;
	for (size_t i = 0; i < p->type_count; i++) {
		err = add_type(p, &options->types[i], &p->types[i]);
		if (err)
			return err;
	}
	err = add_type(p, &options->period_type, &p->period_type);
	if (err)
		return err;
	return add_string(p, options->default_type, &p->default_type);
}

static int add_texts(struct pprof *p, const struct pprof_options *options)
{
	int err = add_string(p, options->drop_frames, &p->drop_frames);

	if (!err)
		err = add_string(p, options->keep_frames, &p->keep_frames);
	return err ? err : add_string(p, options->doc_url, &p->doc_url);
}

static int init_tables(struct pprof *p)
{
	struct intern *tables[] = { &p->strings, &p->mappings, &p->functions, &p->locations,
		&p->stacks, &p->label_sets, &p->samples };
	int err;

	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		err = intern_init(tables[i], MAX_RECORDS, p->limit_bytes);
		if (err)
			return err;
	}
	return 0;
}

int pprof_create(const struct pprof_options *options, struct pprof **ret_pprof)
{
	autocall(auto_pprof_destroy) struct pprof *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return -ENOMEM;
	p->limit_bytes = options->limit_bytes ? options->limit_bytes : DEFAULT_LIMIT_BYTES;
	p->period = options->period;
	p->time_ns = options->time_ns;
	p->duration_ns = options->duration_ns;
	p->no_inlines = options->no_inlines;
	err = init_tables(p);
	if (err)
		return err;
	err = add_types(p, options);
	if (!err)
		err = add_texts(p, options);
	if (err)
		return err;
	*ret_pprof = take(p);
	return 0;
}

void pprof_destroy(struct pprof *p)
{
	if (!p)
		return;
	intern_deinit(&p->strings);
	intern_deinit(&p->mappings);
	intern_deinit(&p->functions);
	intern_deinit(&p->locations);
	intern_deinit(&p->stacks);
	intern_deinit(&p->label_sets);
	intern_deinit(&p->samples);
	free(p->facts);
	free(p->comments);
	free(p->values);
	pprof_order_deinit(&p->order);
	free(p);
}

/* Interns a record. Returns -E2BIG if the memory limit is exceeded. */
static int add_record(struct pprof *p, struct intern *table, const void *record, size_t size,
	uint32_t *ret_number)
{
	if (pprof_bytes(p) > p->limit_bytes)
		return -E2BIG;
	return intern_bytes(table, record, size, ret_number);
}

int pprof_mapping(struct pprof *p, const struct pprof_mapping *mapping, uint64_t *ret_id)
{
	struct mapping_record record = { mapping->start, mapping->limit, mapping->offset, 0, 0 };
	size_t known = p->mappings.count;
	uint32_t number;
	int err;

	err = add_string(p, mapping->file, &record.file);
	if (err)
		return err;
	err = add_string(p, mapping->build_id, &record.build_id);
	if (err)
		return err;
	err = array_reserve(p->facts, p->facts_capacity, known + 1, MAX_RECORDS);
	if (err)
		return err;
	err = add_record(p, &p->mappings, &record, sizeof(record), &number);
	if (err)
		return err;
	if (number == known)
		p->facts[number] = (struct mapping_facts){ 0 };
	*ret_id = number;
	return 0;
}

bool pprof_is_nameless(const char *name, const char *system_name)
{
	const char *plus = *system_name ? NULL : strrchr(name, '+');
	size_t digits;

	if (!plus || strncmp(plus, "+0x", 3))
		return false;
	digits = strspn(plus + 3, "0123456789abcdef");
	return digits && !plus[3 + digits];
}

static uint32_t line_number(int64_t line)
{
	return line > 0 && line <= UINT32_MAX ? (uint32_t)line : 0;
}

int pprof_function(struct pprof *p, const struct pprof_line *line, uint32_t *ret_id)
{
	struct function_record record = {
		.start_line = line_number(line->start_line),
		.nameless = line->nameless,
	};
	size_t known = p->functions.count;
	int err;

	err = add_string(p, line->name, &record.name);
	if (err)
		return err;
	err = add_string(p, line->system_name, &record.system_name);
	if (err)
		return err;
	err = known_string(p, line->file, line->file_string, &record.file);
	if (err)
		return err;
	err = add_record(p, &p->functions, &record, sizeof(record), ret_id);
	if (!err && *ret_id == known)
		pprof_order_deinit(&p->order);
	return err;
}

static int pprof_add_line(
	struct pprof *p, const struct pprof_line *line, struct line_record *ret_line)
{
	uint32_t function = line->function;
	int err = 0;

	if (function >= p->functions.count)
		return -ENOENT;
	if (!function)
		err = pprof_function(p, line, &function);
	if (err)
		return err;
	*ret_line = (struct line_record){ function, line_number(line->line),
		line_number(line->column) };
	return 0;
}

static const struct function_record *pprof_function_at(const struct pprof *p, uint32_t id)
{
	return (const void *)intern_text(&p->functions, id);
}

static bool pprof_is_function_named(const struct function_record *function)
{
	return function->name && !function->nameless;
}

bool pprof_is_named(const struct pprof *p, const struct location_record *location)
{
	for (uint32_t i = 0; i < location->line_count; i++)
		if (!pprof_is_function_named(pprof_function_at(p, location->lines[i].function)))
			return false;
	return location->line_count > 0;
}

static void note_unnamed(uint64_t address, struct mapping_facts *facts)
{
	if (!facts->unnamed || address < facts->first_unnamed)
		facts->first_unnamed = address;
	if (!facts->unnamed || address > facts->last_unnamed)
		facts->last_unnamed = address;
	facts->unnamed = true;
}

static void note_facts(
	const struct pprof *p, const struct location_record *location, struct mapping_facts *facts)
{
	if (!pprof_is_named(p, location)) {
		note_unnamed(location->address, facts);
		return;
	}
	facts->named = true;
	for (uint32_t i = 0; i < location->line_count; i++) {
		const struct line_record *line = &location->lines[i];

		facts->lacks_file |= pprof_function_at(p, line->function)->file == 0;
		facts->lacks_line |= line->line == 0;
	}
}

int pprof_location(struct pprof *p, uint64_t mapping, uint64_t address,
	const struct pprof_line *lines, size_t line_count, uint64_t *ret_id)
{
	struct location_record record; /* large: only the used part is initialized */
	size_t known = p->locations.count;
	uint32_t number;
	int err;

	if (mapping >= p->mappings.count)
		return -ENOENT;
	if (line_count > PPROF_MAX_LINES)
		return -E2BIG;
	record.address = address;
	record.mapping = (uint32_t)mapping;
	record.line_count = (uint32_t)line_count;
	for (size_t i = 0; i < line_count; i++) {
		err = pprof_add_line(p, &lines[i], &record.lines[i]);
		if (err)
			return err;
	}
	err = add_record(p, &p->locations, &record,
		offsetof(struct location_record, lines[line_count]), &number);
	if (err)
		return err;
	if (number == known)
		pprof_order_deinit(&p->order);
	if (number == known && mapping)
		note_facts(p, &record, &p->facts[mapping]);
	*ret_id = number;
	return 0;
}

static int label_string(struct pprof *p, const char *text, uint32_t string, uint32_t *guess)
{
	return string ? known_string(p, text, string, guess) : add_string_again(p, text, guess);
}

/* Interns LABEL's strings. LAST, the previous sample's label at this index, mostly has the same. */
static int label_of(struct pprof *p, const struct pprof_label *label, struct label_record *last,
	struct label_record *ret_label)
{
	const bool is_text = label->text != NULL;
	int err = label_string(p, label->key, label->key_string, &last->key);

	if (!err)
		err = label_string(p, is_text ? label->text : label->unit, label->value_string,
			is_text ? &last->text : &last->unit);
	if (err)
		return err;
	*ret_label = (struct label_record){ .key = last->key };
	if (is_text) {
		ret_label->text = last->text;
		return 0;
	}
	ret_label->unit = last->unit;
	ret_label->number = label->number;
	return 0;
}

/* Inserts RECORD into the COUNT sorted LABELS, unless its key is already there. */
static void sort_in(const struct label_record *record, struct label_record *labels, size_t *count)
{
	size_t at = *count;

	while (at > 0 && labels[at - 1].key > record->key)
		at--;
	if (at > 0 && labels[at - 1].key == record->key)
		return;
	memmove(&labels[at + 1], &labels[at], (*count - at) * sizeof(*labels));
	labels[at] = *record;
	++*count;
}

static int add_labels(struct pprof *p, const struct pprof_label *labels, size_t count,
	struct label_record *ret_sorted, size_t *ret_kept)
{
	struct label_record record;
	int err;

	*ret_kept = 0;
	for (size_t i = 0; i < count; i++) {
		if (labels[i].text && !*labels[i].text)
			continue;
		err = label_of(p, &labels[i], &p->last_labels[i], &record);
		if (err)
			return err;
		sort_in(&record, ret_sorted, ret_kept);
	}
	return 0;
}

static void add_values(struct pprof *p, uint32_t sample, bool first, const int64_t *values)
{
	int64_t *sums = &p->values[(sample - 1) * p->type_count];

	for (size_t i = 0; i < p->type_count; i++) {
		if (first)
			sums[i] = values[i];
		else if (__builtin_add_overflow(sums[i], values[i], &sums[i]))
			sums[i] = INT64_MAX;
	}
}

int pprof_stack(struct pprof *p, const uint64_t *locations, size_t count, uint32_t *ret_stack)
{
	uint32_t ids[PPROF_MAX_FRAMES];

	if (count > PPROF_MAX_FRAMES)
		return -E2BIG;
	for (size_t i = 0; i < count; i++) {
		if (locations[i] == 0 || locations[i] >= p->locations.count)
			return -ENOENT;
		ids[i] = (uint32_t)locations[i];
	}
	return add_record(p, &p->stacks, ids, count * sizeof(*ids), ret_stack);
}

int pprof_labels(
	struct pprof *p, const struct pprof_label *labels, size_t count, uint32_t *ret_labels)
{
	struct label_record sorted[PPROF_MAX_LABELS];
	size_t kept;
	int err;

	if (count > PPROF_MAX_LABELS)
		return -E2BIG;
	err = add_labels(p, labels, count, sorted, &kept);
	if (err)
		return err;
	return add_record(p, &p->label_sets, sorted, kept * sizeof(*sorted), ret_labels);
}

int pprof_sample_of(struct pprof *p, uint32_t stack, uint32_t labels, const int64_t *values)
{
	const struct sample_record record = { stack, labels };
	size_t known = p->samples.count;
	uint32_t number;
	int err;

	if (stack >= p->stacks.count || labels >= p->label_sets.count)
		return -ENOENT;
	err = array_reserve(p->values, p->values_capacity, known * p->type_count, SIZE_MAX / 8);
	if (err)
		return err;
	err = add_record(p, &p->samples, &record, sizeof(record), &number);
	if (err)
		return err;
	if (number == known)
		pprof_order_deinit(&p->order);
	add_values(p, number, number == known, values);
	return 0;
}

int pprof_sample(struct pprof *p, const uint64_t *locations, size_t location_count,
	const int64_t *values, const struct pprof_label *labels, size_t label_count)
{
	uint32_t stack, set;
	int err = pprof_stack(p, locations, location_count, &stack);

	if (!err)
		err = pprof_labels(p, labels, label_count, &set);
	return err ? err : pprof_sample_of(p, stack, set, values);
}

const uint32_t *pprof_stack_of(const struct pprof *p, uint32_t sample, uint32_t *ret_depth)
{
	const struct sample_record *record = (const void *)intern_text(&p->samples, sample);

	*ret_depth = (uint32_t)(intern_size(&p->stacks, record->stack) / sizeof(uint32_t));
	return (const void *)intern_text(&p->stacks, record->stack);
}

/* Makes room for one more value in each sample, from the last one on. */
static void spread_values(struct pprof *p, size_t sample_count)
{
	for (size_t i = sample_count; i-- > 0;) {
		memmove(&p->values[i * (p->type_count + 1)], &p->values[i * p->type_count],
			p->type_count * sizeof(*p->values));
		p->values[i * (p->type_count + 1) + p->type_count] = 0;
	}
}

int pprof_add_type(struct pprof *p, const struct pprof_type *type, size_t *ret_number)
{
	size_t samples = pprof_sample_count(p);
	struct type_strings strings;
	int err;

	if (p->type_count >= PPROF_MAX_TYPES)
		return -E2BIG;
	err = add_type(p, type, &strings);
	if (!err)
		err = array_reserve(
			p->values, p->values_capacity, samples * (p->type_count + 1), SIZE_MAX / 8);
	if (err)
		return err;
	spread_values(p, samples);
	p->types[p->type_count] = strings;
	*ret_number = p->type_count++;
	return 0;
}

int pprof_comment(struct pprof *p, const char *text)
{
	int err;

	err = array_reserve(
		p->comments, p->comment_capacity, p->comment_count + 1, PPROF_MAX_COMMENTS);
	if (!err)
		err = add_string(p, text, &p->comments[p->comment_count]);
	if (err)
		return err;
	p->comment_count++;
	return 0;
}

void pprof_set_times(struct pprof *p, int64_t period, int64_t time_ns, int64_t duration_ns)
{
	p->period = period;
	p->time_ns = time_ns;
	p->duration_ns = duration_ns;
}

size_t pprof_sample_count(const struct pprof *p)
{
	return p->samples.count - 1;
}
