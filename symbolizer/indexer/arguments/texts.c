/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/arguments/texts.h"

#include <dwarf.h>
#include <string.h>

#include "base/cleanup.h"
#include "symbolizer/arguments/argument_plan.h"

enum { MAX_MEMBERS = 512 /* with methods */, WORD = sizeof(uint64_t) };

static bool text_member(struct type *type, const char *name, struct type *ret_type, uint32_t *off)
{
	Dwarf_Die member;
	uint32_t at;

	if (type->shape != TYPE_STRUCT || dwarf_child(&type->die, &member))
		return false;
	for (int i = 0; i < MAX_MEMBERS; i++) {
		const char *known = dwarf_diename(&member);

		if (dwarf_tag(&member) == DW_TAG_member && known && !strcmp(known, name)) {
			if (!type_member_offset(&member, &at))
				return false;
			if (!type_of(&member, ret_type))
				*ret_type = (struct type){ .shape = TYPE_OTHER };
			*off += at;
			return true;
		}
		if (dwarf_siblingof(&member, &member))
			break;
	}
	return false;
}

static bool text_is_word(const struct type *type)
{
	return (type->shape == TYPE_UNSIGNED || type->shape == TYPE_POINTER) && type->size == WORD;
}

/* The words NAME of a pointer and LENGTH_NAME of a number, in TYPE itself. */
static bool text_pair(
	struct type *type, const char *name, const char *length_name, struct text_layout *layout)
{
	struct type pointer, length;
	struct text_layout found = *layout;

	if (!text_member(type, name, &pointer, &found.pointer_off) ||
		!text_member(type, length_name, &length, &found.length_off) ||
		pointer.shape != TYPE_POINTER || length.shape != TYPE_UNSIGNED ||
		!text_is_word(&pointer) || !text_is_word(&length))
		return false;
	*layout = found;
	return true;
}

/* Clang may only declare what holds the pointer, which with the usual allocator is all of it. */
static bool text_of_libstdcxx(struct type *type, const char *name, struct text_layout *layout)
{
	struct type holder, pointer, length;

	if (!text_member(type, "_M_dataplus", &holder, &layout->pointer_off) ||
		!text_member(type, "_M_string_length", &length, &layout->length_off) ||
		length.shape != TYPE_UNSIGNED || !text_is_word(&length))
		return false;
	if (!holder.size)
		return strstr(name, ", std::allocator<char>") && layout->pointer_off == 0 &&
		       layout->length_off == WORD;
	return text_member(&holder, "_M_p", &pointer, &layout->pointer_off) &&
	       pointer.shape == TYPE_POINTER;
}

/* The type NAME that is declared within TYPE. */
static bool text_nested(struct type *type, const char *name, struct type *ret_type)
{
	Dwarf_Die child;

	if (dwarf_child(&type->die, &child))
		return false;
	for (int i = 0; i < MAX_MEMBERS; i++) {
		const char *known = dwarf_diename(&child);

		if (dwarf_tag(&child) == DW_TAG_structure_type && known && !strcmp(known, name)) {
			*ret_type = (struct type){ .shape = TYPE_STRUCT, .die = child };
			return true;
		}
		if (dwarf_siblingof(&child, &child))
			break;
	}
	return false;
}

/*
 * `__r_` (since LLVM 20 `__rep_`) is a union of a long and a short form, both as large as the
 * string. The names of the members in front have changed; the layout has not.
 */
static bool text_of_libcxx(struct type *type, struct text_layout *layout)
{
	struct type holder, long_form, pointer, length;
	struct text_layout found = *layout;
	uint32_t off = 0;

	if ((!text_member(type, "__r_", &holder, &off) &&
		    !text_member(type, "__rep_", &holder, &off)) ||
		off || type->size != LIBCXX_STRING_BYTES ||
		!text_nested(type, "__long", &long_form) ||
		!text_member(&long_form, "__data_", &pointer, &found.pointer_off) ||
		!text_member(&long_form, "__size_", &length, &found.length_off) ||
		!text_is_word(&pointer) || !text_is_word(&length) ||
		found.pointer_off != 2 * WORD || found.length_off != WORD)
		return false;
	found.is_libcxx = true;
	*layout = found;
	return true;
}

/* `buf` has been nested in different ways; the pointer ends a chain of structs in all of them. */
static bool text_of_vec(struct type *type, struct text_layout *layout)
{
	static const char *const chain[] = { "inner", "ptr", "pointer", "pointer" };
	struct type at, length, next;

	if (!text_member(type, "buf", &at, &layout->pointer_off) ||
		!text_member(type, "len", &length, &layout->length_off) || !text_is_word(&length))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(chain) && at.shape == TYPE_STRUCT; i++)
		if (text_member(&at, chain[i], &next, &layout->pointer_off))
			at = next;
	return at.shape == TYPE_POINTER;
}

static bool text_begins(const char *name, const char *with)
{
	return !strncmp(name, with, strlen(with));
}

static bool text_of_rust(struct type *type, const char *name, struct text_layout *layout)
{
	struct type vec;
	uint32_t at = 0;

	if (*name == '&') {
		layout->is_text = !strcmp(name, "&str") || !strcmp(name, "&mut str");
		return (layout->is_text || strchr(name, '[')) &&
		       text_pair(type, "data_ptr", "length", layout);
	}
	if (text_begins(name, "Vec<"))
		return text_of_vec(type, layout);
	if (strcmp(name, "String") || !text_member(type, "vec", &vec, &at))
		return false;
	layout->is_text = true;
	layout->pointer_off = layout->length_off = at;
	return dwarf_diename(&vec.die) && text_begins(dwarf_diename(&vec.die), "Vec<u8") &&
	       text_of_vec(&vec, layout);
}

bool text_layout_of(struct type *type, struct text_layout *ret_layout)
{
	const char *name = type->shape == TYPE_STRUCT ? dwarf_diename(&type->die) : NULL;
	struct text_layout layout = { .is_text = true };
	bool is_known;

	if (!name)
		return false;
	if (text_begins(name, "basic_string<char,"))
		is_known = text_of_libstdcxx(type, name, &layout) || text_of_libcxx(type, &layout);
	else if (text_begins(name, "basic_string_view<char,"))
		is_known = text_pair(type, "_M_str", "_M_len", &layout) ||
			   text_pair(type, "__data_", "__size_", &layout) ||
			   text_pair(type, "__data", "__size", &layout);
	else {
		layout.is_text = false;
		is_known = text_of_rust(type, name, &layout);
	}
	if (is_known)
		*ret_layout = layout;
	return is_known;
}
