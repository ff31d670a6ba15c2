/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/dwarf/dwarf_names.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

enum {
	MAX_CHAIN = 16, /* references from entry to entry; compilers emit three at most */
	MAX_SCOPES = 32, /* namespaces and classes around a function */
	MAX_NAME = 4096, /* bytes of a qualified name */
	MAX_TEXT = 64 * 1024, /* bytes of a name in the file; longer ones are left out */
	MAX_KNOWN = 1 << 18,
};

/* A qualified name under construction. */
struct path {
	char text[MAX_NAME];
	size_t size;
	bool over; /* did not fit: the plain name is used instead of a truncated one */
};

void dwarf_names_init(struct dwarf_names *n, struct dwarf *d, struct index_writer *w)
{
	*n = (struct dwarf_names){ .d = d, .w = w };
	dwarf_scopes_init(&n->scopes);
	map_init(&n->known, MAX_KNOWN);
}

void dwarf_names_deinit(struct dwarf_names *n)
{
	dwarf_scopes_deinit(&n->scopes);
	map_deinit(&n->known);
	free(n->functions);
}

static void path_append(struct path *path, const char *text)
{
	size_t size = strlen(text);

	if (size > sizeof(path->text) - path->size) {
		path->over = true;
		return;
	}
	memcpy(path->text + path->size, text, size);
	path->size += size;
}

/* Returns a name in the style of demanglers. */
static const char *anonymous_scope(uint16_t tag)
{
	switch (tag) {
	case DW_TAG_namespace:
		return "(anonymous namespace)";
	case DW_TAG_class_type:
		return "(anonymous class)";
	case DW_TAG_structure_type:
		return "(anonymous struct)";
	case DW_TAG_union_type:
		return "(anonymous union)";
	case DW_TAG_enumeration_type:
		return "(anonymous enum)";
	}
	return "(anonymous)";
}

/* Returns the file that REFERENCE, in N's file, points into; NULL if there is none. */
static struct dwarf_names *names_of(struct dwarf_names *n, const struct dwarf_value *reference)
{
	if (reference->kind == DWARF_REFERENCE)
		return n;
	return reference->kind == DWARF_ALTERNATE_REFERENCE ? n->alternate : NULL;
}

/* Position while following scopes: each step may change file, unit and offset. */
struct place {
	struct dwarf_names *names;
	struct dwarf_unit *unit;
	uint64_t offset;
};

/* Follows references to the entry that has the name, maybe in another unit or file. */
static int find_named(struct place *at, struct dwarf_die *ret_die)
{
	for (int i = 0; i < MAX_CHAIN; i++) {
		struct dwarf_names *next;
		int err = dwarf_die_at(at->names->d, at->offset, ret_die, &at->unit);

		if (err)
			return err;
		next = names_of(at->names, &ret_die->origin);
		if (ret_die->name.kind != DWARF_NONE || !next)
			return 0;
		at->names = next;
		at->offset = ret_die->origin.number;
	}
	return -EBADMSG;
}

/*
 * Collects the scopes around the entry at OFFSET, innermost first. Returns -EBADMSG if malformed.
 */
static int collect_scopes(struct dwarf_names *n, struct dwarf_unit *u, uint64_t offset,
	const char **texts, unsigned int *ret_count)
{
	struct place at = { n, u, offset };
	unsigned int count = 0;

	for (;;) {
		struct dwarf_die die;
		const char *text;
		int err = dwarf_scope_around(
			&at.names->scopes, at.names->d, at.unit, at.offset, &at.offset);

		if (err)
			return err;
		if (!at.offset)
			break;
		if (count == MAX_SCOPES)
			return -EBADMSG;
		err = find_named(&at, &die);
		if (err)
			return err;
		text = dwarf_text(at.names->d, at.unit, &die.name);
		if (text && !work_spend(n->d->work, strlen(text)))
			return -EBADMSG;
		texts[count++] = text && *text ? text : anonymous_scope(die.tag);
	}
	*ret_count = count;
	return 0;
}

/* Makes namespace::Class::TEXT for the entry at OFFSET; 0 if it has no scopes. */
static int qualify(struct dwarf_names *n, struct dwarf_unit *u, uint64_t offset, const char *text,
	uint32_t *ret_name)
{
	const char *scopes[MAX_SCOPES];
	struct path path;
	unsigned int count = 0;
	int err = 0;

	*ret_name = 0;
	if (!dwarf_unit_is_flat(u))
		err = collect_scopes(n, u, offset, scopes, &count);
	if (err || !count)
		return err == -EBADMSG ? 0 : err;
	path.size = 0;
	path.over = false;
	while (count) {
		path_append(&path, scopes[--count]);
		path_append(&path, "::");
	}
	path_append(&path, text);
	if (path.over)
		return 0;
	return writer_string(n->w, path.text, path.size, ret_name);
}

static int dwarf_names_function_at(struct dwarf_names *n, uint64_t offset, unsigned int depth,
	struct dwarf_function *ret_function);

/* *RET_STRING is unchanged if TEXT is empty or too long. */
static int add_text(struct dwarf_names *n, const char *text, uint32_t *ret_string)
{
	size_t length = strlen(text);

	if (!work_spend(n->d->work, length))
		return -EBADMSG;
	return length && length <= MAX_TEXT ? writer_string(n->w, text, length, ret_string) : 0;
}

static int from_linkage(struct dwarf_names *n, const struct dwarf_unit *u,
	const struct dwarf_die *die, struct dwarf_function *f)
{
	const char *text = dwarf_text(n->d, u, &die->linkage);

	return text ? add_text(n, text, &f->linkage) : 0;
}

static int from_origin(struct dwarf_names *n, const struct dwarf_die *die, unsigned int depth,
	struct dwarf_function *f)
{
	struct dwarf_names *names = names_of(n, &die->origin);
	struct dwarf_function origin;
	int err;

	if (!names || (f->linkage && f->start_line))
		return 0;
	err = dwarf_names_function_at(names, die->origin.number, depth + 1, &origin);
	if (err)
		return err;
	if (!f->linkage) {
		f->linkage = origin.linkage;
		f->name = origin.name;
	}
	if (!f->start_line)
		f->start_line = origin.start_line;
	return 0;
}

static int from_name(struct dwarf_names *n, struct dwarf_unit *u, uint64_t offset,
	const struct dwarf_die *die, struct dwarf_function *f)
{
	const char *text = f->linkage ? NULL : dwarf_text(n->d, u, &die->name);
	int err;

	if (!text || !*text)
		return 0;
	err = qualify(n, u, offset, text, &f->name);
	return err ? err : add_text(n, text, &f->linkage);
}

static int dwarf_names_resolve(struct dwarf_names *n, struct dwarf_unit *u, uint64_t offset,
	const struct dwarf_die *die, unsigned int depth, struct dwarf_function *ret_function)
{
	struct dwarf_function f = { .start_line = die->decl_line };
	int err = from_linkage(n, u, die, &f);

	if (!err)
		err = from_origin(n, die, depth, &f);
	if (!err)
		err = from_name(n, u, offset, die, &f);
	if (!err)
		*ret_function = f;
	return err;
}

static int dwarf_names_remember(
	struct dwarf_names *n, uint64_t offset, const struct dwarf_function *f)
{
	int err;

	if (n->count == MAX_KNOWN) {
		map_clear(&n->known);
		n->count = 0;
	}
	err = array_reserve(n->functions, n->capacity, n->count + 1, MAX_KNOWN);
	if (!err)
		err = map_set(&n->known, offset, n->count);
	if (!err)
		n->functions[n->count++] = *f;
	return err;
}

static int dwarf_names_function_at(struct dwarf_names *n, uint64_t offset, unsigned int depth,
	struct dwarf_function *ret_function)
{
	struct dwarf_function f = { 0 };
	struct dwarf_unit *u;
	struct dwarf_die die;
	uint64_t number;
	int err;

	if (map_get(&n->known, offset, &number)) {
		*ret_function = n->functions[number];
		return 0;
	}
	err = depth < MAX_CHAIN ? dwarf_die_at(n->d, offset, &die, &u) : -EBADMSG;
	if (!err)
		err = dwarf_names_resolve(n, u, offset, &die, depth, &f);
	if (err && err != -EBADMSG)
		return err;
	*ret_function = f;
	return dwarf_names_remember(n, offset, &f);
}

int dwarf_names_get(struct dwarf_names *n, struct dwarf_unit *u, uint64_t offset,
	const struct dwarf_die *die, struct dwarf_function *ret_function)
{
	return dwarf_names_resolve(n, u, offset, die, 0, ret_function);
}
