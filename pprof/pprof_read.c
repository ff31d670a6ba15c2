/* SPDX-License-Identifier: Apache-2.0 */
#include "pprof/pprof_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/gzip.h"
#include "base/io.h"
#include "pprof/pprof_unpack.h"

/* ---- checking ------------------------------------------------------------------------------ */
static bool pprof_read_is_string(const Perftools__Profiles__Profile *p, int64_t string)
{
	return string >= 0 && (uint64_t)string < p->n_string_table;
}

const char *pprof_read_text(const struct pprof_read *profile, int64_t string)
{
	return pprof_read_is_string(profile->message, string)
		       ? profile->message->string_table[string]
		       : "";
}

static bool types_are_good(const Perftools__Profiles__Profile *p)
{
	for (size_t i = 0; i < p->n_sample_type; i++) {
		if (!pprof_read_is_string(p, p->sample_type[i]->type) ||
			!pprof_read_is_string(p, p->sample_type[i]->unit))
			return false;
	}
	return p->n_sample_type > 0;
}

static int pprof_read_add_id(struct pprof_ids *ids, uint64_t id, size_t index)
{
	uint64_t other;

	if (!id || pprof_ids_get(ids, id, &other))
		return -EBADMSG;
	if (index >= PPROF_READ_MAX_ENTRIES)
		return -E2BIG;
	if (id != index + 1 || ids->counted != index)
		return map_set(&ids->others, id, index);
	ids->counted++;
	return 0;
}

static int index_mappings(struct pprof_read *profile)
{
	const Perftools__Profiles__Profile *p = profile->message;
	int err = 0;

	for (size_t i = 0; i < p->n_mapping && !err; i++) {
		err = pprof_read_add_id(&profile->mappings, p->mapping[i]->id, i);
		if (!pprof_read_is_string(p, p->mapping[i]->filename) ||
			!pprof_read_is_string(p, p->mapping[i]->build_id))
			err = -EBADMSG;
	}
	return err;
}

static int index_functions(struct pprof_read *profile)
{
	const Perftools__Profiles__Profile *p = profile->message;
	int err = 0;

	for (size_t i = 0; i < p->n_function && !err; i++) {
		const Perftools__Profiles__Function *function = p->function[i];

		err = pprof_read_add_id(&profile->functions, function->id, i);
		if (!pprof_read_is_string(p, function->name) ||
			!pprof_read_is_string(p, function->system_name) ||
			!pprof_read_is_string(p, function->filename))
			err = -EBADMSG;
	}
	return err;
}

static int index_locations(struct pprof_read *profile)
{
	const Perftools__Profiles__Profile *p = profile->message;
	uint64_t index;
	int err = 0;

	for (size_t i = 0; i < p->n_location && !err; i++) {
		const Perftools__Profiles__Location *location = p->location[i];

		err = pprof_read_add_id(&profile->locations, location->id, i);
		if (location->mapping_id &&
			!pprof_ids_get(&profile->mappings, location->mapping_id, &index))
			err = -EBADMSG;
		for (size_t k = 0; k < location->n_line && !err; k++) {
			uint64_t id = location->line[k]->function_id;

			if (id && !pprof_ids_get(&profile->functions, id, &index))
				err = -EBADMSG;
		}
	}
	return err;
}

static bool sample_is_good(const struct pprof_read *profile, size_t number)
{
	const Perftools__Profiles__Profile *p = profile->message;
	const Perftools__Profiles__Sample *sample = p->sample[number];
	uint64_t index;

	if (sample->n_value != p->n_sample_type)
		return false;
	for (size_t i = 0; i < sample->n_location_id; i++) {
		if (!pprof_ids_get(&profile->locations, sample->location_id[i], &index))
			return false;
	}
	for (size_t i = 0; i < sample->n_label; i++) {
		if (!pprof_read_is_string(p, sample->label[i]->key) ||
			!pprof_read_is_string(p, sample->label[i]->str))
			return false;
	}
	return true;
}

static int pprof_read_check_samples(struct pprof_read *profile)
{
	for (size_t i = 0; i < profile->message->n_sample; i++) {
		if (!sample_is_good(profile, i))
			return -EBADMSG;
	}
	return 0;
}

static int pprof_read_decode_samples(struct pprof_read *profile, const struct cursor *samples)
{
	const struct pprof_samples_known known = { &profile->locations,
		profile->message->n_sample_type, profile->message->n_string_table };

	return pprof_samples_init(&profile->samples, *samples, &known);
}

/* SAMPLES: as they are encoded; NULL if the message has them. */
static int pprof_read_check(
	struct pprof_read *profile, const struct cursor *samples, const char **ret_why)
{
	const Perftools__Profiles__Profile *p = profile->message;
	int err;

	*ret_why = "its string table does not begin with an empty string";
	if (!p->n_string_table || *p->string_table[0])
		return -EBADMSG;
	*ret_why = "it has no sample types";
	if (!types_are_good(p))
		return -EBADMSG;
	*ret_why = "a mapping, function or location refers to something that is not there";
	err = index_mappings(profile);
	if (!err)
		err = index_functions(profile);
	if (!err)
		err = index_locations(profile);
	if (err)
		return err;
	*ret_why = "a sample refers to something that is not there, or has too few values";
	return samples ? pprof_read_decode_samples(profile, samples)
		       : pprof_read_check_samples(profile);
}

/* ---- reading ------------------------------------------------------------------------------- */
/* Bounds the unpacked size: protobuf-c makes an object of some 50 bytes from two. */
enum { UNPACKED_BYTES = 1 << 30 };

struct budget {
	size_t left;
};

static void *budget_alloc(void *context, size_t size)
{
	struct budget *budget = context;

	if (size > budget->left)
		return NULL;
	budget->left -= size;
	return malloc(size);
}

static void budget_free(void *context, void *memory)
{
	(void)context;
	free(memory);
}

static int pprof_read_unpack(const struct buffer *plain, Perftools__Profiles__Profile **ret_message)
{
	struct budget budget = { UNPACKED_BYTES };
	ProtobufCAllocator allocator = { budget_alloc, budget_free, &budget };

	*ret_message = perftools__profiles__profile__unpack(&allocator, plain->size, plain->bytes);
	return *ret_message ? 0 : -EBADMSG;
}

static int read_plain(int dir_fd, const char *path, struct buffer *plain)
{
	autocall(buffer_deinit) struct buffer file;
	int err;

	buffer_init(&file, PPROF_READ_FILE_BYTES);
	err = io_read_file(dir_fd, path, &file);
	if (err)
		return err;
	if (!file.size)
		return -EBADMSG;
	/* Several gzip members are concatenated, and appended protobuf messages merge. */
	return gzip_is(file.bytes, file.size) ? gzip_inflate(file.bytes, file.size, plain)
					      : buffer_append(plain, file.bytes, file.size);
}

/* WHOLE: as pprof_read_at(). */
static int pprof_read_decode(
	const struct buffer *plain, bool whole, struct pprof_read *profile, const char **ret_why)
{
	struct cursor samples;
	int err;

	map_init(&profile->mappings.others, PPROF_READ_MAX_ENTRIES);
	map_init(&profile->locations.others, PPROF_READ_MAX_ENTRIES);
	map_init(&profile->functions.others, PPROF_READ_MAX_ENTRIES);
	arena_init(&profile->memory, UNPACKED_BYTES);
	err = whole ? pprof_unpack(plain, &profile->memory, &profile->message, &samples)
		    : pprof_read_unpack(plain, &profile->message);
	return err ? err : pprof_read_check(profile, whole ? &samples : NULL, ret_why);
}

static int pprof_read_below(int dir_fd, const char *path, bool whole,
	struct pprof_read *ret_profile, const char **ret_why)
{
	autocall(buffer_deinit) struct buffer plain;
	struct pprof_read profile = { 0 };
	int err;

	*ret_why = "it is neither pprof nor gzip-compressed pprof";
	buffer_init(&plain, PPROF_READ_PLAIN_BYTES);
	err = read_plain(dir_fd, path, &plain);
	if (err)
		return err;
	err = pprof_read_decode(&plain, whole, &profile, ret_why);
	if (err)
		pprof_read_deinit(&profile);
	else
		*ret_profile = profile;
	return err;
}

int pprof_read_at(
	int dir_fd, const char *path, struct pprof_read *ret_profile, const char **ret_why)
{
	return pprof_read_below(dir_fd, path, true, ret_profile, ret_why);
}

int pprof_read_file(const char *path, struct pprof_read *ret_profile, const char **ret_why)
{
	return pprof_read_below(AT_FDCWD, path, false, ret_profile, ret_why);
}

void pprof_read_deinit(struct pprof_read *profile)
{
	ProtobufCAllocator allocator = { budget_alloc, budget_free, NULL };

	map_deinit(&profile->mappings.others);
	map_deinit(&profile->locations.others);
	map_deinit(&profile->functions.others);
	if (profile->memory.chunks)
		arena_deinit(&profile->memory);
	else if (profile->message)
		perftools__profiles__profile__free_unpacked(profile->message, &allocator);
	pprof_samples_deinit(&profile->samples);
	*profile = (struct pprof_read){ 0 };
}
