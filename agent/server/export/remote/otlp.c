/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts pprof to OTLP. Both use the same tables, but OTLP has one dictionary for all profiles of
 * a request, whose entry 0 always means "none". pprof's ids of mappings, functions and locations
 * run from 1 without gaps (payload.h), so they serve as OTLP indices unchanged. Only strings are
 * renumbered: build IDs and labels are not in OTLP's string table, which should hold no unused
 * strings. Here are the tables and the request; otlp_profiles.c has the samples, otlp_attributes.c
 * the attributes.
 *
 * The arena bounds everything: protobuf-c makes an object of some 50 bytes from two.
 */
#include "agent/server/export/remote/otlp.h"

#include <errno.h>

#include "agent/server/export/remote/otlp_internal.h"
#include "agent/server/export/remote/otlp_profiles.h"
#include "base/cleanup.h"
#include "base/file_hash.h"
#include "base/gzip.h"
#include "base/version.h"

enum {
	PLAIN_BYTES = 64 << 20, /* the uncompressed pprof */
	ARENA_BYTES = 256 << 20,
	ENTRIES_LIMIT = 8 << 20, /* per table */
	STRINGS_BYTES = 64 << 20,
};

void *otlp_alloc(struct otlp *o, size_t count, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes))
		bytes = SIZE_MAX; /* the arena refuses that */
	return arena_zalloc(&o->arena, MAX(bytes, (size_t)1));
}

/* ---- strings ------------------------------------------------------------------------------- */
int otlp_string(struct otlp *o, const char *text, int32_t *ret_index)
{
	uint32_t number;
	int err = intern_string(&o->strings, text, &number);

	if (!err)
		*ret_index = (int32_t)number;
	return err;
}

static bool otlp_is_string(const struct otlp *o, int64_t number)
{
	return number >= 0 && (uint64_t)number < o->pprof->n_string_table;
}

const char *otlp_pprof_text(const struct otlp *o, int64_t number)
{
	return otlp_is_string(o, number) ? o->pprof->string_table[number] : "";
}

int otlp_pprof_string(struct otlp *o, int64_t number, int32_t *ret_index)
{
	int err = 0;

	if (!otlp_is_string(o, number))
		return -EBADMSG;
	if (o->string_of[number] < 0)
		err = otlp_string(o, o->pprof->string_table[number], &o->string_of[number]);
	*ret_index = o->string_of[number];
	return err;
}

/* ---- reading the pprof --------------------------------------------------------------------- */
static void *arena_give(void *arena, size_t size)
{
	return arena_alloc(arena, size);
}

static void arena_keep(void *arena, void *memory)
{
	(void)arena;
	(void)memory;
}

/* Ids must be 1..N: they are used as indices. */
static bool ids_are_indices(const Perftools__Profiles__Profile *p)
{
	for (size_t i = 0; i < p->n_mapping; i++) {
		if (p->mapping[i]->id != i + 1)
			return false;
	}
	for (size_t i = 0; i < p->n_function; i++) {
		if (p->function[i]->id != i + 1)
			return false;
	}
	for (size_t i = 0; i < p->n_location; i++) {
		if (p->location[i]->id != i + 1 || p->location[i]->mapping_id > p->n_mapping)
			return false;
	}
	return true;
}

static bool lines_are_good(const Perftools__Profiles__Profile *p)
{
	for (size_t i = 0; i < p->n_location; i++) {
		const Perftools__Profiles__Location *location = p->location[i];

		for (size_t k = 0; k < location->n_line; k++) {
			if (location->line[k]->function_id - 1 >= p->n_function)
				return false;
		}
	}
	return true;
}

static bool samples_are_good(const Perftools__Profiles__Profile *p)
{
	for (size_t i = 0; i < p->n_sample; i++) {
		const Perftools__Profiles__Sample *sample = p->sample[i];

		if (sample->n_value != p->n_sample_type || sample->n_location_id > OTLP_STACK_LIMIT)
			return false;
		for (size_t k = 0; k < sample->n_location_id; k++) {
			if (sample->location_id[k] - 1 >= p->n_location)
				return false;
		}
	}
	return p->n_sample_type && p->n_string_table && !*p->string_table[0];
}

static int read_file_hashes(struct otlp *o)
{
	const Perftools__Profiles__Profile *p = o->pprof;
	const char *hex;
	uint64_t id;

	o->file_hashes = otlp_alloc(o, p->n_mapping + 1, sizeof(*o->file_hashes));
	if (!o->file_hashes)
		return o->arena.error;
	for (size_t i = 0; i < p->n_comment; i++) {
		if (file_hash_parse(otlp_pprof_text(o, p->comment[i]), &id, &hex) &&
			id <= p->n_mapping)
			o->file_hashes[id] = hex;
	}
	return 0;
}

static int read_pprof(struct otlp *o)
{
	const struct buffer *gzip = &o->payload->pprof;
	ProtobufCAllocator allocator = { arena_give, arena_keep, &o->arena };
	autocall(buffer_deinit) struct buffer plain;
	int err;

	buffer_init(&plain, PLAIN_BYTES);
	err = gzip_inflate(gzip->bytes, gzip->size, &plain);
	if (err)
		return err;
	o->pprof = perftools__profiles__profile__unpack(&allocator, plain.size, plain.bytes);
	if (!o->pprof)
		return o->arena.error ? o->arena.error : -EBADMSG;
	if (!ids_are_indices(o->pprof) || !lines_are_good(o->pprof) || !samples_are_good(o->pprof))
		return -EBADMSG;
	o->string_of = otlp_alloc(o, o->pprof->n_string_table, sizeof(*o->string_of));
	if (!o->string_of)
		return o->arena.error;
	for (size_t i = 0; i < o->pprof->n_string_table; i++)
		o->string_of[i] = -1;
	return read_file_hashes(o);
}

/* ---- mappings, functions, locations -------------------------------------------------------- */
static int fill_mapping(
	struct otlp *o, const Perftools__Profiles__Mapping *from, Otlp__Mapping *mapping)
{
	struct attribute_set set = { .count = 0 };
	int err = otlp_pprof_string(o, from->filename, &mapping->filename_strindex);

	mapping->memory_start = from->memory_start;
	mapping->memory_limit = from->memory_limit;
	mapping->file_offset = from->file_offset;
	if (!err)
		err = otlp_mapping_attributes(o, from, &set);
	return err ? err
		   : otlp_keep_attributes(
			     o, &set, &mapping->n_attribute_indices, &mapping->attribute_indices);
}

static int fill_function(
	struct otlp *o, const Perftools__Profiles__Function *from, Otlp__Function *function)
{
	int err = otlp_pprof_string(o, from->name, &function->name_strindex);

	if (!err)
		err = otlp_pprof_string(o, from->system_name, &function->system_name_strindex);
	if (!err)
		err = otlp_pprof_string(o, from->filename, &function->filename_strindex);
	function->start_line = from->start_line;
	return err;
}

static int fill_lines(
	struct otlp *o, const Perftools__Profiles__Location *from, Otlp__Location *location)
{
	Otlp__Line *lines = otlp_alloc(o, from->n_line, sizeof(*lines));

	location->lines = otlp_alloc(o, from->n_line, sizeof(*location->lines));
	if (!lines || !location->lines)
		return o->arena.error;
	for (size_t i = 0; i < from->n_line; i++) {
		otlp__line__init(&lines[i]);
		lines[i].function_index = (int32_t)from->line[i]->function_id;
		lines[i].line = from->line[i]->line;
		lines[i].column = from->line[i]->column;
		location->lines[i] = &lines[i];
	}
	location->n_lines = from->n_line;
	return 0;
}

static int fill_location(
	struct otlp *o, const Perftools__Profiles__Location *from, Otlp__Location *location)
{
	struct attribute_set set = { .count = 0 };
	int err = fill_lines(o, from, location);

	location->mapping_index = (int32_t)from->mapping_id;
	location->address = from->address;
	if (!err)
		err = otlp_location_attributes(o, from, &set);
	return err ? err
		   : otlp_keep_attributes(
			     o, &set, &location->n_attribute_indices, &location->attribute_indices);
}

static int fill_mappings(struct otlp *o, Otlp__ProfilesDictionary *d)
{
	size_t count = o->pprof->n_mapping + 1;
	Otlp__Mapping *mappings = otlp_alloc(o, count, sizeof(*mappings));
	int err = 0;

	d->mapping_table = otlp_alloc(o, count, sizeof(*d->mapping_table));
	if (!mappings || !d->mapping_table)
		return o->arena.error;
	for (size_t i = 0; i < count && !err; i++) {
		otlp__mapping__init(&mappings[i]);
		d->mapping_table[i] = &mappings[i];
		err = i ? fill_mapping(o, o->pprof->mapping[i - 1], &mappings[i]) : 0;
	}
	d->n_mapping_table = count;
	return err;
}

static int fill_functions(struct otlp *o, Otlp__ProfilesDictionary *d)
{
	size_t count = o->pprof->n_function + 1;
	Otlp__Function *functions = otlp_alloc(o, count, sizeof(*functions));
	int err = 0;

	d->function_table = otlp_alloc(o, count, sizeof(*d->function_table));
	if (!functions || !d->function_table)
		return o->arena.error;
	for (size_t i = 0; i < count && !err; i++) {
		otlp__function__init(&functions[i]);
		d->function_table[i] = &functions[i];
		err = i ? fill_function(o, o->pprof->function[i - 1], &functions[i]) : 0;
	}
	d->n_function_table = count;
	return err;
}

static int fill_locations(struct otlp *o, Otlp__ProfilesDictionary *d)
{
	size_t count = o->pprof->n_location + 1;
	Otlp__Location *locations = otlp_alloc(o, count, sizeof(*locations));
	int err = 0;

	d->location_table = otlp_alloc(o, count, sizeof(*d->location_table));
	if (!locations || !d->location_table)
		return o->arena.error;
	for (size_t i = 0; i < count && !err; i++) {
		otlp__location__init(&locations[i]);
		d->location_table[i] = &locations[i];
		err = i ? fill_location(o, o->pprof->location[i - 1], &locations[i]) : 0;
	}
	d->n_location_table = count;
	return err;
}

/* ---- the request --------------------------------------------------------------------------- */
static int fill_strings(struct otlp *o, Otlp__ProfilesDictionary *d)
{
	size_t count = o->strings.count;

	d->string_table = otlp_alloc(o, count, sizeof(*d->string_table));
	if (!d->string_table)
		return o->arena.error;
	for (uint32_t i = 0; i < count; i++)
		d->string_table[i] = (char *)intern_text(&o->strings, i);
	d->n_string_table = count;
	return 0;
}

static int otlp_pack(const Otlp__ExportProfilesServiceRequest *request, struct buffer *out)
{
	size_t size = otlp__export_profiles_service_request__get_packed_size(request);
	void *room = buffer_room(out, size);

	if (!room)
		return out->error;
	out->size += otlp__export_profiles_service_request__pack(request, room);
	return 0;
}

static int encode(struct otlp *o, struct buffer *out)
{
	Otlp__ProfilesDictionary dictionary = OTLP__PROFILES_DICTIONARY__INIT;
	Otlp__InstrumentationScope by = OTLP__INSTRUMENTATION_SCOPE__INIT;
	Otlp__ScopeProfiles scope = OTLP__SCOPE_PROFILES__INIT, *scopes = &scope;
	Otlp__Resource resource = OTLP__RESOURCE__INIT;
	Otlp__ResourceProfiles of_resource = OTLP__RESOURCE_PROFILES__INIT, *all = &of_resource;
	Otlp__ExportProfilesServiceRequest request = OTLP__EXPORT_PROFILES_SERVICE_REQUEST__INIT;
	int err;

	by.name = (char *)"fathom";
	by.version = (char *)FATHOM_VERSION;
	scope.scope = &by;
	of_resource.resource = &resource;
	of_resource.n_scope_profiles = 1;
	of_resource.scope_profiles = &scopes;
	request.n_resource_profiles = 1;
	request.resource_profiles = &all;
	request.dictionary = &dictionary;
	/* Tables that others refer to come last. */
	err = otlp_resource(o, &resource) ?: otlp_profiles(o, &scope);
	err = err ?: fill_mappings(o, &dictionary);
	err = err ?: fill_functions(o, &dictionary);
	err = err ?: fill_locations(o, &dictionary);
	err = err ?: otlp_stack_table(o, &dictionary);
	err = err ?: otlp_link_table(o, &dictionary);
	err = err ?: otlp_attribute_table(o, &dictionary);
	err = err ?: fill_strings(o, &dictionary);
	return err ? err : otlp_pack(&request, out);
}

static int init(struct otlp *o, const struct payload *payload)
{
	int err;

	*o = (struct otlp){ .payload = payload };
	arena_init(&o->arena, ARENA_BYTES);
	err = intern_init(&o->strings, ENTRIES_LIMIT, STRINGS_BYTES);
	if (!err)
		err = intern_init(&o->texts, ENTRIES_LIMIT, STRINGS_BYTES);
	if (!err)
		err = intern_init(&o->attributes, ENTRIES_LIMIT, STRINGS_BYTES);
	if (!err)
		err = intern_init(&o->links, ENTRIES_LIMIT, STRINGS_BYTES);
	return err ? err : intern_init(&o->stacks, ENTRIES_LIMIT, STRINGS_BYTES);
}

static void deinit(struct otlp *o)
{
	arena_deinit(&o->arena);
	intern_deinit(&o->strings);
	intern_deinit(&o->texts);
	intern_deinit(&o->attributes);
	intern_deinit(&o->stacks);
	intern_deinit(&o->links);
}

int otlp_encode(const struct payload *payload, struct buffer *out)
{
	autocall(deinit) struct otlp o;
	int err = init(&o, payload);

	if (!err)
		err = read_pprof(&o);
	return err ? err : encode(&o, out);
}
