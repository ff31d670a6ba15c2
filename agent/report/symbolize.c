/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/report/symbolize.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "symbolizer/kernel_image.h"

enum {
	MAX_MAPPINGS = 1 << 20,
	MAX_MAPPING_BYTES = 64 << 20,
	BUILD_ID_TEXT_BYTES = 2 * BUILD_ID_MAX_BYTES + 1,
	KERNEL_NAME_BYTES = 64, /* MODULE_NAME_LEN is 56 */
	KERNEL_KEY = '\2',
	NO_SEGMENT = UINT32_MAX,
};

/* The kernel's half of the address space, on x86_64 and aarch64. */
static const uint64_t kernel_half = UINT64_C(1) << 63;

/*
 * Key of a mapping of a file. Other mappings have their name as the key, kernel ones with
 * KERNEL_KEY in front. No such text starts like this one, with a NUL inside, at this size.
 */
struct mapping_key {
	uint32_t tag; /* 1 */
	uint32_t module; /* module number */
	uint32_t segment; /* segment of its index, or NO_SEGMENT */
};

/* The frame being symbolized. */
struct frame_place {
	const struct profile_frame *frame;
	const struct module *module; /* for a native frame in a mapping; else NULL */
	uint32_t process; /* generation */
};

int symbolize_init(struct symbolize *s, const struct report_sources *sources,
	const struct report_options *options)
{
	*s = (struct symbolize){ .sources = sources };
	if (options) {
		s->no_inlines = options->no_inlines;
		s->no_demangle = options->no_demangle;
		s->file_hashes = options->file_hashes;
	}
	arena_init(&s->arena, MAX_MAPPING_BYTES);
	return intern_init(&s->keys, MAX_MAPPINGS, MAX_MAPPING_BYTES);
}

void symbolize_deinit(struct symbolize *s)
{
	free(s->mappings);
	intern_deinit(&s->keys);
	arena_deinit(&s->arena);
}

/* Finds or adds the mapping of KEY; if *RET_NEW, the caller fills it in. */
static int mapping_of(struct symbolize *s, const void *key, size_t size,
	struct symbolize_mapping **ret_mapping, bool *ret_new)
{
	struct symbolize_mapping *mapping;
	size_t known = s->keys.count;
	uint32_t number;
	bool new;
	int err;

	err = array_reserve(s->mappings, s->mapping_capacity, known + 1, MAX_MAPPINGS);
	if (err)
		return err;
	err = intern_bytes(&s->keys, key, size, &number);
	if (err)
		return err;
	new = number == known;
	if (new)
		s->mappings[number] = arena_zalloc(&s->arena, sizeof(*mapping));
	mapping = s->mappings[number];
	if (!mapping)
		return s->arena.error;
	if (new)
		mapping->content.file = mapping->content.build_id = "";
	*ret_mapping = mapping;
	*ret_new = new;
	return 0;
}

static const char *keep_text(struct symbolize *s, const char *text)
{
	const char *copy = arena_strndup(&s->arena, text, strlen(text));

	return copy ? copy : "";
}

static const char *keep_build_id(struct symbolize *s, const struct build_id *id)
{
	char text[BUILD_ID_TEXT_BYTES];

	build_id_format(id, text, sizeof(text));
	return keep_text(s, text);
}

/* ---- kernel ---- */

static void fill_kernel(struct symbolize *s, struct pprof_mapping *content)
{
	const struct kallsyms *kallsyms = s->sources->kallsyms;
	struct build_id id;

	content->file = "[kernel.kallsyms]";
	content->start = kernel_half;
	content->limit = UINT64_MAX;
	if (kallsyms)
		kallsyms_text(kallsyms, &content->start, &content->limit);
	if (!kernel_build_id(&id))
		content->build_id = keep_build_id(s, &id);
}

static void fill_kernel_module(
	struct symbolize *s, const char *module, struct pprof_mapping *content)
{
	char name[KERNEL_NAME_BYTES + 2];
	struct build_id id;

	snprintf(name, sizeof(name), "[%.*s]", KERNEL_NAME_BYTES - 1, module);
	content->file = keep_text(s, name);
	content->start = kernel_half;
	content->limit = UINT64_MAX;
	kallsyms_module_range(s->sources->kallsyms, module, &content->start, &content->limit);
	if (!kernel_module_build_id(module, &id))
		content->build_id = keep_build_id(s, &id);
}

/* MODULE as in kallsyms: "" is the kernel itself. */
static int kernel_mapping(struct symbolize *s, const char *module, struct symbolized *frame)
{
	char key[KERNEL_NAME_BYTES + 1];
	struct symbolize_mapping *mapping;
	bool new;
	int err;

	snprintf(key, sizeof(key), "%c%s", KERNEL_KEY, module);
	err = mapping_of(s, key, strlen(key) + 1, &mapping, &new);
	if (err)
		return err;
	if (new &&*module)
		fill_kernel_module(s, module, &mapping->content);
	else if (new)
		fill_kernel(s, &mapping->content);
	frame->mapping = mapping;
	return 0;
}

/* An address unknown to kallsyms: in the kernel's text, or in no mapping. */
static int unknown_kernel_frame(struct symbolize *s, struct symbolized *frame)
{
	int err;

	err = kernel_mapping(s, "", frame);
	if (err)
		return err;
	frame->outcome = s->sources->kallsyms ? SYMBOLIZE_NO_SYMBOL : SYMBOLIZE_NO_INDEX;
	if (frame->address >= frame->mapping->content.start &&
		frame->address < frame->mapping->content.limit)
		return 0;
	frame->mapping = NULL;
	frame->outcome = SYMBOLIZE_NO_MAPPING;
	return 0;
}

static void set_only_line(struct symbolized *frame, const char *name)
{
	frame->outcome = SYMBOLIZE_NAMED;
	frame->line_count = 1;
	frame->lines[0] = (struct index_frame){ .name = name, .linkage = name, .file = "" };
}

_Static_assert(PROFILE_FRAME_TENANT_SHIFT + KALLSYMS_TENANT_BITS <= 32, "it fits");
_Static_assert(MODULE_NUMBER_MAX < 1 << PROFILE_KIND_SHIFT, "a module's number is no kind");

/* Which symbol had the address at the time of the sample (kallsyms_tenant()). */
static uint32_t symbolize_tenant_of(const struct profile_frame *frame)
{
	return frame->flags >> PROFILE_FRAME_TENANT_SHIFT;
}

static int kernel_frame(struct symbolize *s, const struct frame_place *at, struct symbolized *frame)
{
	const struct kallsyms *kallsyms = s->sources->kallsyms;
	struct ksymbol symbol;

	frame->kernel = true;
	if (!kallsyms || !kallsyms_lookup_of(
				 kallsyms, frame->address, symbolize_tenant_of(at->frame), &symbol))
		return unknown_kernel_frame(s, frame);
	set_only_line(frame, symbol.name);
	return kernel_mapping(s, symbol.module, frame);
}

/* ---- user ---- */

static const char *symbolize_module_name(const struct module *module)
{
	if (module->kind == MODULE_VDSO)
		return "[vdso]";
	return module->path ? module->path : "";
}

static const char *module_build_id(
	struct symbolize *s, const struct module *module, const struct index *index)
{
	if (module->id.build_id.size)
		return keep_build_id(s, &module->id.build_id);
	if (index && index_build_id(index)->size)
		return keep_build_id(s, index_build_id(index));
	return index ? keep_text(s, index_text_build_id(index)) : "";
}

static const char *file_hash(struct symbolize *s, const struct index *index)
{
	char hex[FILE_HASH_TEXT_BYTES];

	if (!s->file_hashes || !index)
		return NULL;
	file_hash_format(index_file_hash(index), hex);
	return *hex ? keep_text(s, hex) : NULL;
}

/*
 * One mapping for each executable segment. Without an index (SEGMENT is NO_SEGMENT) the addresses
 * of the mapping are file offsets.
 */
static int file_mapping(struct symbolize *s, const struct module *module, const struct index *index,
	uint32_t segment, struct symbolized *frame)
{
	struct mapping_key key = { 1, module->number, segment };
	struct symbolize_mapping *mapping;
	struct index_segment at;
	bool new;
	int err;

	err = mapping_of(s, &key, sizeof(key), &mapping, &new);
	if (err)
		return err;
	frame->mapping = mapping;
	if (!new)
		return 0;
	mapping->is_file = module->kind == MODULE_FILE;
	mapping->content.file = keep_text(s, symbolize_module_name(module));
	mapping->content.build_id = module_build_id(s, module, index);
	mapping->file_hash = file_hash(s, index);
	if (segment == NO_SEGMENT) {
		mapping->content.limit = module->id.file.size_bytes ?: UINT64_MAX;
		return 0;
	}
	at = index_segment(index, segment);
	mapping->content.start = at.address;
	mapping->content.limit = at.address + at.size;
	mapping->content.offset = at.file_off;
	return 0;
}

static void apply_options(const struct symbolize *s, struct symbolized *frame)
{
	if (s->no_inlines && frame->line_count > 1) {
		frame->lines[0] = frame->lines[frame->line_count - 1];
		frame->line_count = 1;
	}
	for (size_t i = 0; s->no_demangle && i < frame->line_count; i++)
		frame->lines[i].name = frame->lines[i].linkage;
}

static int file_frame(struct symbolize *s, const struct frame_place *at, struct symbolized *frame)
{
	const struct module *module = at->module;
	const struct index *index = s->sources->index(s->sources->context, module);
	uint64_t elf_addr;
	size_t segment;
	int err;

	frame->outcome = index ? SYMBOLIZE_NO_SYMBOL : SYMBOLIZE_NO_INDEX;
	if (!index || !index_address(index, frame->address, &elf_addr, &segment))
		return file_mapping(s, module, index, NO_SEGMENT, frame);
	err = file_mapping(s, module, index, (uint32_t)segment, frame);
	if (err)
		return err;
	frame->address = elf_addr;
	frame->line_count = index_lookup(index, elf_addr, frame->lines, INDEX_MAX_FRAMES);
	if (frame->line_count)
		frame->outcome = SYMBOLIZE_NAMED;
	apply_options(s, frame);
	return 0;
}

/* A mapping that is not a file holds any address of any process. */
static int bracket_mapping(struct symbolize *s, const char *name, struct symbolized *frame)
{
	struct symbolize_mapping *mapping;
	bool new;
	int err;

	err = mapping_of(s, name, strlen(name) + 1, &mapping, &new);
	if (err)
		return err;
	if (new) {
		mapping->content.limit = UINT64_MAX;
		mapping->content.file = keep_text(s, name);
	}
	frame->mapping = mapping;
	return 0;
}

static int anon_frame(struct symbolize *s, const struct frame_place *at, struct symbolized *frame)
{
	struct process *p = processes_find(s->sources->processes, at->process);
	const struct perf_map *map = p ? s->sources->perf_map(s->sources->context, p) : NULL;
	const char *name;
	uint64_t start;

	if (map && perf_map_lookup(map, frame->address, &name, &start)) {
		set_only_line(frame, name);
		return bracket_mapping(s, "[jit]", frame);
	}
	frame->outcome = map && perf_map_is_behind(map) ? SYMBOLIZE_UNREAD : SYMBOLIZE_NO_SYMBOL;
	return bracket_mapping(s, "[anon]", frame);
}

static int symbolize_special_frame(
	struct symbolize *s, const struct frame_place *at, struct symbolized *frame)
{
	const char *name = symbolize_module_name(at->module);

	frame->outcome = SYMBOLIZE_NO_SYMBOL;
	return bracket_mapping(s, *name ? name : "[special]", frame);
}

/* ---- runtimes ---- */

static int runtime_frame(
	struct symbolize *s, const struct frame_place *at, struct symbolized *frame)
{
	const struct report_sources *sources = s->sources;
	const struct abi_frame runtime = profile_frame_of_runtime(at->frame);
	struct process *p = processes_find(sources->processes, at->process);
	struct runtime_names names = { .lines = frame->lines };

	frame->address = runtime.address;
	if (p && sources->runtime_names)
		sources->runtime_names(sources->context, p, &runtime, &names);
	frame->line_count = MIN(names.line_count, (size_t)INDEX_MAX_FRAMES);
	if (frame->line_count)
		frame->outcome = SYMBOLIZE_NAMED;
	else
		frame->outcome = names.mapping ? SYMBOLIZE_NO_SYMBOL : SYMBOLIZE_NO_RUNTIME;
	apply_options(s, frame);
	return bracket_mapping(s, names.mapping ? names.mapping : "[runtime]", frame);
}

/* ---- kinds ---- */

/* Operations of one kind of frames. */
struct frame_kind {
	bool is_private; /* a frame differs from process to process */
	/* See symbolize_key(). */
	size_t (*key)(
		const struct profile_frame *frame, uint32_t process, struct symbolize_key *ret_key);
	/* Fills in the rest of FRAME; its address is already set. */
	int (*symbolize)(
		struct symbolize *s, const struct frame_place *at, struct symbolized *frame);
};

/* For callers, the address inside the call: the return address may be in the next function. */
static uint64_t native_address(const struct profile_frame *frame)
{
	bool caller = frame->flags & PROFILE_FRAME_RETURN;

	return caller && frame->address ? frame->address - 1 : frame->address;
}

static size_t shared_key(
	const struct profile_frame *frame, uint32_t process, struct symbolize_key *ret_key)
{
	(void)process;
	ret_key->address = native_address(frame);
	ret_key->module = frame->module;
	ret_key->context = 0;
	return offsetof(struct symbolize_key, position);
}

static size_t memory_key(
	const struct profile_frame *frame, uint32_t process, struct symbolize_key *ret_key)
{
	size_t size = shared_key(frame, process, ret_key);

	ret_key->context = process;
	return size;
}

static size_t kernel_key(
	const struct profile_frame *frame, uint32_t process, struct symbolize_key *ret_key)
{
	size_t size = shared_key(frame, process, ret_key);

	ret_key->context = symbolize_tenant_of(frame);
	return size;
}

static size_t runtime_key(
	const struct profile_frame *frame, uint32_t process, struct symbolize_key *ret_key)
{
	ret_key->address = frame->address;
	ret_key->module = frame->module;
	ret_key->context = process;
	ret_key->position = frame->flags;
	ret_key->reserved = 0;
	return sizeof(*ret_key);
}

static int nowhere_frame(
	struct symbolize *s, const struct frame_place *at, struct symbolized *frame)
{
	(void)s;
	(void)at;
	(void)frame;
	return 0;
}

static const struct frame_kind nowhere_kind = { false, shared_key, nowhere_frame };
static const struct frame_kind kernel_kind = { false, kernel_key, kernel_frame };
static const struct frame_kind runtime_kind = { true, runtime_key, runtime_frame };

/* By kind of module; frames of memory without a file are native as well. */
static const struct frame_kind native_kinds[] = {
	[MODULE_FILE] = { false, shared_key, file_frame },
	[MODULE_VDSO] = { false, shared_key, file_frame },
	[MODULE_ANON] = { true, memory_key, anon_frame },
	[MODULE_SPECIAL] = { false, shared_key, symbolize_special_frame },
};

/* Returns the kind of FRAME. *RET_MODULE is the module of a native frame, else NULL. */
static const struct frame_kind *symbolize_kind_of(const struct symbolize *s,
	const struct profile_frame *frame, const struct module **ret_module)
{
	*ret_module = NULL;
	if (profile_frame_kind(frame) == PROFILE_KIND_KERNEL)
		return &kernel_kind;
	if (profile_frame_kind(frame) != PROFILE_KIND_NATIVE)
		return &runtime_kind;
	*ret_module = modules_find(s->sources->modules, frame->module);
	return *ret_module ? &native_kinds[(*ret_module)->kind] : &nowhere_kind;
}

bool symbolize_is_private(const struct symbolize *s, const struct profile_frame *frame)
{
	const struct module *module;

	return symbolize_kind_of(s, frame, &module)->is_private;
}

size_t symbolize_key(const struct symbolize *s, uint32_t process, const struct profile_frame *frame,
	struct symbolize_key *ret_key)
{
	const struct module *module;

	return symbolize_kind_of(s, frame, &module)->key(frame, process, ret_key);
}

int symbolize_frame(struct symbolize *s, uint32_t process, const struct profile_frame *frame,
	struct symbolized *ret_frame)
{
	struct frame_place at = { .frame = frame, .process = process };
	const struct frame_kind *kind = symbolize_kind_of(s, frame, &at.module);

	ret_frame->address = native_address(frame);
	ret_frame->mapping = NULL;
	ret_frame->outcome = SYMBOLIZE_NO_MAPPING;
	ret_frame->kernel = false;
	ret_frame->line_count = 0;
	return kind->symbolize(s, &at, ret_frame);
}

void symbolize_marker(const char *name, struct symbolized *ret_frame)
{
	ret_frame->address = 0;
	ret_frame->mapping = NULL;
	ret_frame->kernel = false;
	set_only_line(ret_frame, name);
	ret_frame->outcome = SYMBOLIZE_MARKER;
}
