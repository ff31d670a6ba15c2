/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `fathom symbolize --profile`: the sources of names for a foreign profile. A mapping's build ID
 * identifies its module; the file at its path, a debug file or a cached index must have that build
 * ID. Other files at that path are ignored: a wrong name is worse than none.
 *
 * Profiles disagree on what an address is. Most have process addresses (Go, perf): the mapping's
 * start and offset turn them into file offsets. Others (ours, newer Parca agents') have ELF
 * addresses. Our mappings are in ELF addresses too, so the same arithmetic works; an address
 * outside its mapping can only be an ELF address.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/commands/commands.h"
#include "agent/commands/profile_names.h"
#include "agent/commands/record.h"
#include "agent/commands/symbolize.h"
#include "agent/sampler/files/build_ids.h"
#include "agent/sampler/process/modules.h"
#include "agent/sampler/process/open_file.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/failure.h"
#include "base/host.h"
#include "base/intern.h"
#include "pprof/pprof.h"
#include "symbolizer/builds/cache.h"
#include "symbolizer/builds/debug_search.h"
#include "symbolizer/kallsyms/link_address.h"
#include "symbolizer/kernel_image.h"
#include "symbolizer/vdso.h"

enum {
	MAX_SOURCES = 1 << 14, /* distinct modules of one profile */
	MAX_MODULE_NAME = 64,
	MAX_SAID = 8, /* modules listed as not found */
	KASLR_ALIGN = 1 << 21,
};
static const size_t MAX_OUTPUT_BYTES = (size_t)1 << 30;

/* A module of the profile, shared by its mappings. */
struct source {
	const char *path, *build_id; /* borrowed from the message */
	struct index *index;
	bool debug_only; /* the index is a debug file's, whose segments have no file offsets */
	bool kernel; /* names come from `kallsyms` */
	uint64_t shift; /* added to its addresses to get those of the running kernel */
};

struct naming {
	struct symbolize_indexes *indexes;
	struct build_ids build_ids;
	struct metrics metrics; /* of build_ids; not read */
	const struct pprof_read *profile;
	struct source *sources;
	size_t count, capacity;
	struct map by_name; /* hash of path and build ID → number */
	uint32_t *numbers; /* by mapping: index in `sources` plus 1; 0 = not looked up yet */
	struct symbolize_kernel kernel;
	bool kernel_tried;
};

static void naming_deinit(struct naming *n)
{
	for (size_t i = 0; i < n->count; i++)
		index_destroy(n->sources[i].index);
	build_ids_deinit(&n->build_ids);
	free(n->sources);
	free(n->numbers);
	map_deinit(&n->by_name);
	symbolize_kernel_close(&n->kernel);
}

/* ---- files ---------------------------------------------------------------------------------- */

/* Returns false if TEXT is no GNU build ID in hex, e.g. Go's own ID or a hash. */
static bool parse_build_id(const char *text, struct build_id *ret_id)
{
	size_t length = strlen(text);
	struct build_id id = { .size = (uint8_t)(length / 2) };

	if (!length || length % 2 || length / 2 > BUILD_ID_MAX_BYTES)
		return false;
	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)tolower((unsigned char)text[i]);

		if (!isxdigit(c))
			return false;
		id.bytes[i / 2] =
			(uint8_t)(id.bytes[i / 2] << 4 | (c <= '9' ? c - '0' : c - 'a' + 10));
	}
	*ret_id = id;
	return true;
}

static bool symbolize_profile_has_lines(const struct index *index)
{
	return index && index_sources(index) & (INDEX_SOURCE_DWARF | INDEX_SOURCE_PCLNTAB);
}

/*
 * True if the open file may have build ID WANTED. Go's linker puts its note in no segment: then
 * only the index can tell, since building it reads the sections. So it can if the note could not be
 * read now.
 */
static bool symbolize_profile_may_be(
	const struct build_id_reader *reader, int fd, const struct build_id *wanted)
{
	const struct build_id_question question = { .fd = fd, .task_fd = -1 };
	struct build_id found;
	int err = host_build_id(reader, &question, &found);

	return err ? err == -ENOENT || failure_is_transient(err) : build_id_equal(&found, wanted);
}

/* Returns the index of the file at PATH; NULL unless it has build ID WANTED. */
static struct index *index_of_file(
	struct naming *n, const char *path, const struct build_id *wanted)
{
	const struct build_id_reader *reader = &n->build_ids.reader;
	struct symbolize_indexes *indexes = n->indexes;
	struct index *index = NULL;
	autoclose int fd = -1;
	struct module_id id;

	if (path[0] != '/' || open_here(path, &fd) || !symbolize_profile_may_be(reader, fd, wanted))
		return NULL;
	if (!module_identify(reader, fd, &id) && indexes->cache &&
		!cache_open(indexes->cache, &id, &index) && symbolize_profile_has_lines(index) &&
		build_id_equal(index_build_id(index), wanted))
		return index;
	index_destroy(take(index));
	if (symbolize_index_of_file(indexes, path, &index))
		return NULL;
	if (!build_id_equal(index_build_id(index), wanted))
		index_destroy(take(index));
	return index;
}

/* Like index_of_file(), for the textual build ID of Go's linker. */
static struct index *index_of_go_file(
	struct symbolize_indexes *indexes, const char *path, const char *wanted)
{
	struct index *index = NULL;
	autoclose int fd = -1;

	if (!*wanted || path[0] != '/' || open_here(path, &fd) ||
		symbolize_index_of_file(indexes, path, &index))
		return NULL;
	if (strcmp(index_text_build_id(index), wanted) != 0)
		index_destroy(take(index));
	return index;
}

static struct index *index_of_debug_file(
	struct naming *n, const struct build_id *id, const char *name)
{
	struct symbolize_indexes *indexes = n->indexes;
	autofree char *path = NULL;
	struct index *index;

	if (!debug_search_by_id(indexes->debug_directories, id, &path))
		return index_of_file(n, path, id);
	if (name[0] == '[')
		return NULL;
	return symbolize_index_of_id(indexes, id, name, &index) ? NULL : index;
}

static struct index *index_from_cache(
	struct symbolize_indexes *indexes, const struct build_id *build_id)
{
	struct index *index = NULL;

	if (!indexes->cache || cache_open_by_build_id(indexes->cache, build_id, &index))
		return NULL;
	return index;
}

/*
 * Keeps the better index: the first with lines, else the first. Returns true if the kept one has
 * lines, so that no other need be tried.
 */
static bool offer(struct source *source, struct index *index, bool debug_only)
{
	if (!index || (source->index && !symbolize_profile_has_lines(index))) {
		index_destroy(index);
		return symbolize_profile_has_lines(source->index);
	}
	index_destroy(source->index);
	source->index = index;
	source->debug_only = debug_only;
	return symbolize_profile_has_lines(index);
}

static struct index *index_of_vdso(struct symbolize_indexes *indexes, const struct build_id *wanted)
{
	struct index *index = NULL;
	autoclose int fd = -1;
	struct module_id id;

	if (vdso_open(&fd, &id) || !build_id_equal(&id.build_id, wanted))
		return NULL;
	return symbolize_index(indexes, &id,
		       &(struct symbolize_file){ .path = "[vdso]", .elf_fd = fd, .root_fd = -1 },
		       &index)
		       ? NULL
		       : index;
}

static void find_index(struct naming *n, struct source *source)
{
	struct build_id id;

	if (!parse_build_id(source->build_id, &id)) {
		offer(source, index_of_go_file(n->indexes, source->path, source->build_id), false);
		return;
	}
	if (offer(source, index_of_file(n, source->path, &id), false) ||
		offer(source, index_from_cache(n->indexes, &id), false))
		return;
	if (!strcmp(source->path, "[vdso]"))
		offer(source, index_of_vdso(n->indexes, &id), false);
	else
		offer(source, index_of_debug_file(n, &id, source->path), true);
}

/* ---- the kernel ----------------------------------------------------------------------------- */

static bool is_kernel_name(const char *path)
{
	return !strncmp(path, "[kernel.kallsyms]", 17) || !strcmp(path, "[kernel]") ||
	       !strcmp(path, "[guest.kernel.kallsyms]");
}

/* Copies PATH without its brackets to NAME; returns false if it has none. */
static bool symbolize_profile_module_name(const char *path, char name[MAX_MODULE_NAME])
{
	size_t length = strlen(path);

	if (length < 3 || length - 2 >= MAX_MODULE_NAME || path[0] != '[' ||
		path[length - 1] != ']')
		return false;
	memcpy(name, path + 1, length - 2);
	name[length - 2] = 0;
	return true;
}

static const struct kallsyms *kernel_symbols(struct naming *n)
{
	if (!n->kernel_tried)
		(void)symbolize_kernel_open(true, &n->kernel);
	n->kernel_tried = true;
	return n->kernel.kallsyms;
}

static bool is_build_id(const struct source *source, const struct build_id *running)
{
	struct build_id id;

	return parse_build_id(source->build_id, &id) && build_id_equal(&id, running);
}

/*
 * Our profiles have a module's link addresses. Other producers' have those of the kernel that was
 * sampled, where the module may have been anywhere: it must not have moved.
 */
static bool find_kernel_module(
	const struct naming *n, struct source *source, const char *name, uint64_t mapping_start)
{
	uint64_t start, end;

	if (mapping_start == LINK_IMAGES) {
		if (!link_address_resolve(n->kernel.kallsyms, name, LINK_IMAGES, &start))
			return false;
		source->shift = start - LINK_IMAGES;
		return true;
	}
	return kallsyms_module_range(n->kernel.kallsyms, name, &start, &end) &&
	       start == mapping_start;
}

/*
 * Uses the running kernel if it is the same build. The profile may have link addresses, or be from
 * before a reboot: KASLR shifts the kernel's text by a multiple of its alignment.
 */
static bool find_kernel(
	struct naming *n, struct source *source, const Perftools__Profiles__Mapping *mapping)
{
	char name[MAX_MODULE_NAME];
	struct build_id running;
	uint64_t start, end;

	if (is_kernel_name(source->path)) {
		if (kernel_build_id(&running) || !is_build_id(source, &running) ||
			!kernel_symbols(n))
			return false;
		kallsyms_text(n->kernel.kallsyms, &start, &end);
		source->shift = start - mapping->memory_start;
		return source->shift % KASLR_ALIGN == 0;
	}
	if (!symbolize_profile_module_name(source->path, name) ||
		kernel_module_build_id(name, &running) || !is_build_id(source, &running) ||
		!kernel_symbols(n))
		return false;
	return find_kernel_module(n, source, name, mapping->memory_start);
}

/* ---- one address ---------------------------------------------------------------------------- */

static int symbolize_profile_add_source(
	struct naming *n, uint64_t key, const Perftools__Profiles__Mapping *mapping)
{
	int err = array_reserve(n->sources, n->capacity, n->count + 1, MAX_SOURCES);
	struct source *source;

	if (!err)
		err = map_set(&n->by_name, key, n->count);
	if (err)
		return err;
	source = &n->sources[n->count++];
	*source = (struct source){
		.path = pprof_read_text(n->profile, mapping->filename),
		.build_id = pprof_read_text(n->profile, mapping->build_id),
	};
	source->kernel = find_kernel(n, source, mapping);
	if (!source->kernel)
		find_index(n, source);
	return 0;
}

/* Mappings with equal keys share a source. For the kernel the address counts as well. */
static uint64_t symbolize_profile_source_key(
	const struct naming *n, const Perftools__Profiles__Mapping *mapping)
{
	const char *path = pprof_read_text(n->profile, mapping->filename);
	const char *build_id = pprof_read_text(n->profile, mapping->build_id);
	const uint64_t parts[3] = { hash_bytes(path, strlen(path)),
		hash_bytes(build_id, strlen(build_id)),
		path[0] == '[' ? mapping->memory_start : 0 };

	return hash_bytes(parts, sizeof(parts));
}

/* Returns the source of mapping NUMBER, NULL if there are too many sources. */
static const struct source *source_of(struct naming *n, size_t number)
{
	const Perftools__Profiles__Mapping *mapping = n->profile->message->mapping[number];
	uint64_t key = symbolize_profile_source_key(n, mapping), index;

	if (n->numbers[number])
		return &n->sources[n->numbers[number] - 1];
	if (!map_get(&n->by_name, key, &index)) {
		if (symbolize_profile_add_source(n, key, mapping))
			return NULL;
		index = n->count - 1;
	}
	n->numbers[number] = (uint32_t)index + 1;
	return &n->sources[index];
}

static bool is_segment(const struct index *index, const Perftools__Profiles__Mapping *mapping)
{
	for (size_t i = 0; i < index_segment_count(index); i++) {
		struct index_segment segment = index_segment(index, i);

		if (segment.address == mapping->memory_start &&
			segment.address + segment.size == mapping->memory_limit)
			return true;
	}
	return false;
}

static bool elf_address(const struct source *source, const Perftools__Profiles__Mapping *mapping,
	uint64_t address, uint64_t *ret_elf_addr)
{
	bool inside = address >= mapping->memory_start && address < mapping->memory_limit;
	size_t segment;

	*ret_elf_addr = address;
	if (!inside || is_segment(source->index, mapping))
		return true;
	return !source->debug_only &&
	       index_address(source->index, address - mapping->memory_start + mapping->file_offset,
		       ret_elf_addr, &segment);
}

static size_t symbolize_profile_look_up_kernel(const struct naming *n, const struct source *source,
	uint64_t address, struct index_frame *ret)
{
	struct ksymbol symbol;

	if (!kallsyms_lookup(n->kernel.kallsyms, address + source->shift, &symbol))
		return 0;
	*ret = (struct index_frame){ .name = symbol.name, .linkage = symbol.name, .file = "" };
	return 1;
}

static size_t symbolize_profile_look_up(
	void *context, size_t number, uint64_t address, struct index_frame *ret_frames, size_t max)
{
	struct naming *n = context;
	const Perftools__Profiles__Mapping *mapping = n->profile->message->mapping[number];
	const struct source *source = source_of(n, number);
	uint64_t elf_addr;

	if (source && source->kernel)
		return symbolize_profile_look_up_kernel(n, source, address, ret_frames);
	if (!source || !source->index || !elf_address(source, mapping, address, &elf_addr))
		return 0;
	return index_lookup(source->index, elf_addr, ret_frames, max);
}

/* ---- the whole ------------------------------------------------------------------------------ */

static void say_result(const struct naming *n, const struct profile_names_counts *counts)
{
	unsigned int said = 0;

	fprintf(stderr, "added names to %zu of %zu addresses without one\n", counts->named,
		counts->nameless);
	for (size_t i = 0; i < n->count; i++) {
		const struct source *source = &n->sources[i];

		if (source->kernel || source->index || !*source->path || said++ >= MAX_SAID)
			continue;
		fprintf(stderr, "not found: %s, build ID %s\n", source->path,
			*source->build_id ? source->build_id : "unknown");
	}
	if (said > MAX_SAID)
		fprintf(stderr, "not found: %u more\n", said - MAX_SAID);
}

static int write_message(const Perftools__Profiles__Profile *message, const char *path)
{
	autocall(buffer_deinit) struct buffer plain, gzip;
	size_t size = perftools__profiles__profile__get_packed_size(message);
	void *room;
	int err;

	buffer_init(&plain, MAX_OUTPUT_BYTES);
	buffer_init(&gzip, MAX_OUTPUT_BYTES);
	room = buffer_room(&plain, size);
	if (!room)
		return plain.error;
	plain.size = perftools__profiles__profile__pack(message, room);
	err = pprof_gzip(&plain, &gzip);
	return err ? err : output_file_write(path, &gzip);
}

static int symbolize_profile_add_names(struct symbolize_indexes *indexes,
	const struct symbolize_style *style, struct pprof_read *profile)
{
	autocall(naming_deinit) struct naming n = { .indexes = indexes, .profile = profile };
	const struct profile_names_options options = {
		.look_up = symbolize_profile_look_up,
		.context = &n,
		.no_inlines = style->no_inlines,
		.linkage_names = style->linkage_names,
	};
	struct profile_names_counts counts;
	int err;

	build_ids_init(&n.build_ids, &n.metrics);
	map_init(&n.by_name, MAX_SOURCES);
	n.numbers = calloc(profile->message->n_mapping + 1, sizeof(*n.numbers));
	if (!n.numbers)
		return -ENOMEM;
	err = profile_names_add(profile, &options, &counts);
	if (!err)
		say_result(&n, &counts);
	return err;
}

static int symbolize_profile_failed(const char *path, const char *why)
{
	fprintf(stderr, "fathom symbolize: %s: %s\n", path, why);
	return EXIT_FAILED;
}

static const char *reason(int err)
{
	return err == -E2BIG ? "is too large" : strerror(-err);
}

int symbolize_profile(struct symbolize_indexes *indexes, const struct symbolize_style *style,
	const char *input, const char *output)
{
	autocall(pprof_read_deinit) struct pprof_read profile = { 0 };
	const char *why = "";
	int err = output_file_check(output);

	if (err)
		return symbolize_profile_failed(output, strerror(-err));
	err = pprof_read_file(input, &profile, &why);
	if (err)
		return symbolize_profile_failed(input, err == -EBADMSG ? why : reason(err));
	err = symbolize_profile_add_names(indexes, style, &profile);
	if (err)
		return symbolize_profile_failed(input, reason(err));
	err = write_message(profile.message, output);
	return err ? symbolize_profile_failed(output, reason(err)) : EXIT_DONE;
}
