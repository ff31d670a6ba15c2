/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Types of DWARF as far as values are shown. Chains of foreign references have a limit. */
#include <stdbool.h>
#include <stdint.h>

#include <elfutils/libdw.h>

#include "base/buffer.h"

enum type_shape {
	TYPE_OTHER = 0, /* not shown */
	TYPE_SIGNED,
	TYPE_UNSIGNED,
	TYPE_FLOAT,
	TYPE_BOOL,
	TYPE_ENUM,
	TYPE_CHARACTER, /* char of C and Rust; not a byte */
	TYPE_POINTER, /* and references, functions, channels */
	TYPE_STRUCT,
	TYPE_GO_STRING,
	TYPE_GO_SLICE,
	TYPE_GO_MAP,
	TYPE_GO_ERROR_LIKE, /* interface with methods: its first word is an itab */
	TYPE_GO_ANY, /* interface without: its first word is a type */
};

struct type {
	enum type_shape shape;
	uint32_t size; /* bytes */
	Dwarf_Die die; /* without typedef, const and the like */
};

/* The type of DIE. Returns false if it has none, or it is void or broken. */
bool type_of(Dwarf_Die *die, struct type *ret_type);
/* The type that a pointer or reference points to. */
bool type_pointed_to(struct type *pointer, struct type *ret_type);
/* How many elements an array with one dimension has; 0 = not known. */
uint32_t type_array_count(struct type *array, struct type *element);
/* Whether an enumeration may be negative. */
bool type_enum_is_signed(struct type *type);
/* Whether it is an array of characters. */
bool type_is_text(struct type *type);
/* Whether it is C's char, and not merely a byte. */
bool type_is_character(struct type *type);
/* Appends the name of DIE's type as its language writes it. */
void type_name(Dwarf_Die *die, struct buffer *out);
/* The bits of a struct's bit field: of SIZE bytes at an offset. Returns false for other members. */
bool type_member_bits(Dwarf_Die *member, uint32_t *ret_off, uint32_t *ret_size,
	uint8_t *ret_bit_off, uint8_t *ret_bit_size);
/* The offset of a struct's member. Returns false for bit fields and what is not constant. */
bool type_member_offset(Dwarf_Die *member, uint32_t *ret_off);
