/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/symbolize/symbolize.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sampler/symbolize/known_frames.h"
#include "base/arena.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "symbolizer/kallsyms/link_address.h"
#include "symbolizer/kernel_file.h"
#include "symbolizer/kernel_image.h"

enum {
	MAX_MAPPINGS = 1 << 20,
	MAX_MAPPING_BYTES = 64 << 20,
	/* Some 10,000 frames: what a busy machine of a few CPUs has in a window. */
	KNOWN_FRAMES_BYTES = 2 << 20,
	BUILD_ID_TEXT_BYTES = 2 * BUILD_ID_MAX_BYTES + 1,
	KERNEL_NAME_BYTES = 128, /* MODULE_NAME_LEN is 56, names of BPF programs are shorter */
	KERNEL_KEY = '\2',
	START_TEXT_BYTES = 256 + 20, /* NAME_MAX, +0x, an address */
	NO_SEGMENT = UINT32_MAX,
};

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

struct symbolize {
	struct symbolize_options options;
	const struct kallsyms *kallsyms; /* NULL = none */
	struct arena arena;
	struct intern keys; /* keys of mappings, with matching numbers; unused until the first */
	struct symbolized_mapping **mappings;
	size_t mapping_capacity;
	struct known_frames known;
	char start[START_TEXT_BYTES]; /* name of the last frame without a symbol */
};

int symbolize_create(const struct symbolize_options *options, struct symbolize **ret_symbolize)
{
	struct symbolize *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->options = *options;
	arena_init(&s->arena, MAX_MAPPING_BYTES);
	known_frames_init(&s->known, KNOWN_FRAMES_BYTES);
	*ret_symbolize = s;
	return 0;
}

static void symbolize_forget(struct symbolize *s)
{
	intern_deinit(&s->keys);
	arena_reset(&s->arena);
	free(take(s->mappings));
	s->mapping_capacity = 0;
}

void symbolize_destroy(struct symbolize *s)
{
	if (!s)
		return;
	symbolize_forget(s);
	known_frames_deinit(&s->known);
	arena_deinit(&s->arena);
	free(s);
}

void symbolize_begin(struct symbolize *s, const struct kallsyms *kallsyms)
{
	symbolize_forget(s);
	known_frames_trim(&s->known);
	s->kallsyms = kallsyms;
}

void symbolize_index_replaced(struct symbolize *s)
{
	known_frames_forget(&s->known);
}

void symbolize_shrink(struct symbolize *s)
{
	known_frames_forget(&s->known);
}

/* Finds or adds the mapping of KEY; if *RET_NEW, the caller fills it in. */
static int mapping_of(struct symbolize *s, const void *key, size_t size,
	struct symbolized_mapping **ret_mapping, bool *ret_new)
{
	struct symbolized_mapping *mapping;
	uint32_t number;
	size_t known;
	bool new;
	int err;

	err = s->keys.count ? 0 : intern_init(&s->keys, MAX_MAPPINGS, MAX_MAPPING_BYTES);
	if (err)
		return err;
	known = s->keys.count;
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
		mapping->file = mapping->build_id = "";
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

static void fill_kernel(struct symbolize *s, struct symbolized_mapping *mapping)
{
	const struct kallsyms *kallsyms = s->kallsyms;
	struct build_id id;

	mapping->file = "[kernel.kallsyms]";
	if (!kallsyms || !link_address_text(kallsyms, &mapping->start, &mapping->limit)) {
		mapping->start = LINK_UNKNOWN;
		mapping->limit = UINT64_MAX;
	}
	if (!kernel_build_id(&id))
		mapping->build_id = keep_build_id(s, &id);
}

static void fill_kernel_image(
	struct symbolize *s, const char *image, struct symbolized_mapping *mapping)
{
	char name[KERNEL_NAME_BYTES + 2];
	struct build_id id;

	snprintf(name, sizeof(name), "[%.*s]", KERNEL_NAME_BYTES - 1, image);
	mapping->file = keep_text(s, name);
	mapping->start = LINK_IMAGES;
	mapping->limit = LINK_IMAGES_END;
	if (!kernel_module_build_id(image, &id))
		mapping->build_id = keep_build_id(s, &id);
}

/* IMAGE as in struct ksymbol: "" is the kernel itself. */
static int kernel_mapping(struct symbolize *s, const char *image, struct symbolized *frame)
{
	char key[KERNEL_NAME_BYTES + 1];
	struct symbolized_mapping *mapping;
	bool new;
	int err;

	snprintf(key, sizeof(key), "%c%s", KERNEL_KEY, image);
	err = mapping_of(s, key, strlen(key) + 1, &mapping, &new);
	if (err)
		return err;
	if (new &&*image)
		fill_kernel_image(s, image, mapping);
	else if (new)
		fill_kernel(s, mapping);
	frame->mapping = mapping;
	return 0;
}

/* An address unknown to kallsyms: in the kernel's text, or in no mapping. */
static int unknown_kernel_frame(struct symbolize *s, struct symbolized *frame)
{
	const struct kallsyms *kallsyms = s->kallsyms;

	frame->address = kallsyms ? link_address_in_text(kallsyms, frame->address) : LINK_UNKNOWN;
	if (kallsyms && frame->address == LINK_UNKNOWN)
		return 0;
	frame->outcome = kallsyms ? SYMBOLIZE_NO_SYMBOL : SYMBOLIZE_NO_INDEX;
	return kernel_mapping(s, "", frame);
}

static void set_only_line(struct symbolized *frame, const char *name)
{
	frame->outcome = SYMBOLIZE_NAMED;
	frame->line_count = 1;
	frame->lines[0] = (struct index_frame){ .name = name, .linkage = name, .file = "" };
}

_Static_assert(PROFILE_FRAME_TENANT_SHIFT + KALLSYMS_TENANT_BITS <= 32, "it fits");
_Static_assert(MODULE_NUMBER_MAX < 1 << PROFILE_KIND_SHIFT, "a module's number is no kind");

/* Adds lines and inlined functions to FRAME of the kernel, which has its only line already. */
static void kernel_lines(struct symbolize *s, struct symbolized *frame, const char *name)
{
	const struct index *index =
		s->options.kernel_index ? s->options.kernel_index(s->options.context) : NULL;

	if (!index)
		return;
	if (s->options.looks_up)
		s->options.looks_up(s->options.context);
	frame->line_count = kernel_file_lines(index, frame->address, name, frame->lines);
}

bool symbolize_is_kernel_entry(const struct symbolize *s, uint64_t kaddr)
{
	const struct kallsyms_marks *marks = s->kallsyms ? kallsyms_marks(s->kallsyms) : NULL;

	return marks && marks->entry && kaddr >= marks->entry && kaddr < marks->entry_end;
}

/* Tracers put the start of a trampoline in place of a return address: no call is before it. */
static bool is_return_trampoline(const struct kallsyms *kallsyms, uint64_t kaddr)
{
	const struct kallsyms_marks *marks = kallsyms_marks(kallsyms);

	for (size_t i = 0; i < ARRAY_SIZE(marks->trampolines); i++)
		if (kaddr && marks->trampolines[i] == kaddr)
			return true;
	return false;
}

/*
 * No call is in the padding before a function: what the kernel's walk took for a return address is
 * where an interrupt came, at the function's first instruction.
 */
static bool kernel_symbol_is_padding(const struct ksymbol *symbol)
{
	return !strncmp(symbol->name, KALLSYMS_PADDING, strlen(KALLSYMS_PADDING));
}

/* Finds the symbol of a frame; at a return address, of the call before it, if there is one. */
static bool kernel_symbol(const struct symbolize *s, const struct frame_place *at,
	struct symbolized *frame, struct ksymbol *ret_symbol)
{
	const uint64_t kaddr = at->frame->address;
	const uint32_t tenant = profile_frame_tenant(at->frame);
	bool found =
		s->kallsyms && kallsyms_lookup_of(s->kallsyms, frame->address, tenant, ret_symbol);

	if (!found || frame->address == kaddr ||
		(!kernel_symbol_is_padding(ret_symbol) &&
			!is_return_trampoline(s->kallsyms, kaddr)))
		return found;
	frame->address = kaddr;
	return kallsyms_lookup_of(s->kallsyms, kaddr, tenant, ret_symbol);
}

static int kernel_frame(struct symbolize *s, const struct frame_place *at, struct symbolized *frame)
{
	struct ksymbol symbol;

	frame->kernel = true;
	if (!kernel_symbol(s, at, frame, &symbol))
		return unknown_kernel_frame(s, frame);
	set_only_line(frame, symbol.name);
	frame->address = link_address_of(&symbol, frame->address);
	if (!*symbol.image)
		kernel_lines(s, frame, symbol.name);
	return kernel_mapping(s, symbol.image, frame);
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

	if (!index)
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
	struct symbolized_mapping *mapping;
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
	mapping->file = keep_text(s, symbolize_module_name(module));
	mapping->build_id = module_build_id(s, module, index);
	mapping->file_hash = file_hash(s, index);
	if (segment == NO_SEGMENT) {
		mapping->limit = module->id.file.size_bytes ?: UINT64_MAX;
		return 0;
	}
	at = index_segment(index, segment);
	mapping->start = at.address;
	mapping->limit = at.address + at.size;
	mapping->offset = at.file_off;
	return 0;
}

/* Names code without a symbol after the start of its function, if that is known. */
static void symbolize_nameless(struct symbolize *s, const struct module *module,
	const struct index *index, struct symbolized *frame)
{
	const char *path = symbolize_module_name(module), *base = strrchr(path, '/');
	uint64_t start;

	if (!index_nameless(index, frame->address, &start))
		return;
	snprintf(s->start, sizeof(s->start), "%.255s+0x%" PRIx64, base ? base + 1 : path, start);
	frame->lines[0] = (struct index_frame){ .name = s->start, .linkage = "", .file = "" };
	frame->line_count = 1;
	frame->nameless = true;
}

/* Asks INDEX for the names of FRAME, whose address is set. */
static void symbolize_look_up(struct symbolize *s, const struct module *module,
	const struct index *index, struct symbolized *frame)
{
	frame->line_count = index_lookup(index, frame->address, frame->lines, INDEX_MAX_FRAMES);
	if (frame->line_count)
		frame->outcome = SYMBOLIZE_NAMED;
	else
		symbolize_nameless(s, module, index, frame);
}

static int symbolize_known(struct symbolize *s, const struct module *module,
	const struct index *index, const struct known_frame *known, struct symbolized *frame)
{
	frame->address = known->address;
	frame->line_count = known->line_count;
	frame->outcome = known->named ? SYMBOLIZE_NAMED : SYMBOLIZE_NO_SYMBOL;
	frame->nameless = !known->named && known->line_count;
	if (known->line_count)
		memcpy(frame->lines, known->lines, known->line_count * sizeof(*frame->lines));
	return file_mapping(s, module, index, known->segment, frame);
}

static void symbolize_remember(struct symbolize *s, const struct known_frame_key *key,
	const struct index *index, size_t segment, const struct symbolized *frame)
{
	known_frames_put(&s->known, key,
		&(struct known_frame){
			.index = index,
			.lines = frame->lines,
			.address = frame->address,
			.segment = (uint32_t)segment,
			.line_count = (uint16_t)frame->line_count,
			.named = frame->outcome == SYMBOLIZE_NAMED,
		});
}

static int file_frame(struct symbolize *s, const struct frame_place *at, struct symbolized *frame)
{
	const struct module *module = at->module;
	const struct index *index = s->options.index(s->options.context, module);
	const struct known_frame_key key = { .file_off = frame->address, .module = module->number };
	const struct known_frame *known = index ? known_frames_get(&s->known, &key, index) : NULL;
	uint64_t elf_addr;
	size_t segment;
	int err;

	if (known)
		return symbolize_known(s, module, index, known, frame);
	frame->outcome = index ? SYMBOLIZE_NO_SYMBOL : SYMBOLIZE_NO_INDEX;
	if (!index || !index_address(index, frame->address, &elf_addr, &segment))
		return file_mapping(s, module, index, NO_SEGMENT, frame);
	err = file_mapping(s, module, index, (uint32_t)segment, frame);
	if (err)
		return err;
	frame->address = elf_addr;
	if (s->options.looks_up)
		s->options.looks_up(s->options.context);
	symbolize_look_up(s, module, index, frame);
	symbolize_remember(s, &key, index, segment, frame);
	return 0;
}

/* A mapping that is not a file holds any address of any process. */
static int bracket_mapping(struct symbolize *s, const char *name, struct symbolized *frame)
{
	struct symbolized_mapping *mapping;
	bool new;
	int err;

	err = mapping_of(s, name, strlen(name) + 1, &mapping, &new);
	if (err)
		return err;
	if (new) {
		mapping->limit = UINT64_MAX;
		mapping->file = keep_text(s, name);
	}
	frame->mapping = mapping;
	return 0;
}

static int anon_frame(struct symbolize *s, const struct frame_place *at, struct symbolized *frame)
{
	const struct perf_map *map = s->options.perf_map(s->options.context, at->process);
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
	const struct abi_frame runtime = profile_frame_of_runtime(at->frame);
	struct runtime_names names = { .lines = frame->lines };

	frame->address = runtime.address;
	if (s->options.runtime_names)
		s->options.runtime_names(s->options.context, at->process, &runtime, &names);
	frame->line_count = MIN(names.line_count, (size_t)INDEX_MAX_FRAMES);
	if (frame->line_count)
		frame->outcome = SYMBOLIZE_NAMED;
	else
		frame->outcome = names.mapping ? SYMBOLIZE_NO_SYMBOL : SYMBOLIZE_NO_RUNTIME;
	return bracket_mapping(s, names.mapping ? names.mapping : "[runtime]", frame);
}

/* ---- kinds ---- */

/* Fills in the rest of FRAME; its address is already set. */
typedef int symbolize_kind_fn(
	struct symbolize *s, const struct frame_place *at, struct symbolized *frame);

static int nowhere_frame(
	struct symbolize *s, const struct frame_place *at, struct symbolized *frame)
{
	(void)s;
	(void)at;
	(void)frame;
	return 0;
}

/* By kind of module; frames of memory without a file are native as well. */
static symbolize_kind_fn *const native_kinds[] = {
	[MODULE_FILE] = file_frame,
	[MODULE_VDSO] = file_frame,
	[MODULE_KERNEL] = nowhere_frame, /* its frames have a kind of their own */
	[MODULE_ANON] = anon_frame,
	[MODULE_SPECIAL] = symbolize_special_frame,
};

/* How FRAME is symbolized. *RET_MODULE is the module of a native frame, else NULL. */
static symbolize_kind_fn *symbolize_kind_of(const struct symbolize *s,
	const struct profile_frame *frame, const struct module **ret_module)
{
	*ret_module = NULL;
	if (profile_frame_kind(frame) == PROFILE_KIND_KERNEL)
		return kernel_frame;
	if (profile_frame_kind(frame) != PROFILE_KIND_NATIVE)
		return runtime_frame;
	*ret_module = modules_find(s->options.modules, frame->module);
	return *ret_module ? native_kinds[(*ret_module)->kind] : nowhere_frame;
}

/* Leaves of a frame that stands for a function the function itself, at its first line. */
static void symbolize_keep_function(struct symbolized *frame)
{
	if (!frame->line_count)
		return;
	frame->lines[0] = frame->lines[frame->line_count - 1];
	frame->line_count = 1;
	frame->lines[0].line = frame->lines[0].start_line;
	frame->lines[0].column = 0;
}

int symbolize_frame(struct symbolize *s, uint32_t process, const struct profile_frame *frame,
	struct symbolized *ret_frame)
{
	struct frame_place at = { .frame = frame, .process = process };
	symbolize_kind_fn *symbolize = symbolize_kind_of(s, frame, &at.module);
	int err;

	ret_frame->address = profile_frame_call(frame);
	ret_frame->mapping = NULL;
	ret_frame->outcome = SYMBOLIZE_NO_MAPPING;
	ret_frame->kernel = ret_frame->nameless = false;
	ret_frame->line_count = 0;
	err = symbolize(s, &at, ret_frame);
	if (!err && profile_frame_kind(frame) == PROFILE_KIND_NATIVE &&
		frame->flags & PROFILE_FRAME_FUNCTION)
		symbolize_keep_function(ret_frame);
	return err;
}

bool symbolize_program(
	const struct symbolize *s, uint32_t module, struct symbolized_program *ret_program)
{
	const struct module *m = modules_find(s->options.modules, module);
	const struct index *index = m ? s->options.index(s->options.context, m) : NULL;

	if (!index)
		return false;
	*ret_program = (struct symbolized_program){
		.file_hash = *index_file_hash(index),
		.toolchain = index_toolchain(index),
		.is_static = index_kind(index) & INDEX_STATIC,
		.is_stripped = index_kind(index) & INDEX_STRIPPED,
	};
	return true;
}
