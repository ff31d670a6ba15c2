/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What is fetched when a function is entered or left, and what the bytes mean: its arguments or its
 * results. Users write plans as rules (agent/trace_arguments/), the sandbox makes them from DWARF
 * (symbolizer/indexer/arguments/).
 *
 * A plan is one block without pointers, so that the sandbox can pass it on as it is. It knows no
 * process and no addresses.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/abi/fetch.h"

enum {
	ARGUMENTS_MAX = 64, /* of one plan, members included */
	ARGUMENT_NAMES_BYTES = 4096, /* all names and types of one plan */
	ARGUMENT_MAX_DEPTH = 2, /* of members: of a struct that is a member */
	ARGUMENT_NO_FETCH = 0xff,
	ARGUMENT_PLAN_MAGIC = 0x41724731,
	LIBCXX_STRING_BYTES = 24,
};

/* FIRST and SECOND are the fetches of struct argument. */
enum argument_kind {
	ARGUMENT_UNKNOWN = 0, /* nothing can be fetched */
	ARGUMENT_SIGNED, /* FIRST: `size` bytes, as in all kinds of numbers */
	ARGUMENT_UNSIGNED,
	ARGUMENT_FLOAT, /* 4 or 8 bytes */
	ARGUMENT_BOOL,
	ARGUMENT_ENUM, /* its enumerators have names */
	ARGUMENT_CHARACTER, /* 1 byte, or a code point of 4 */
	ARGUMENT_POINTER, /* FIRST: an address, 0 = none */
	ARGUMENT_BYTES, /* FIRST: text of `size` bytes */
	ARGUMENT_C_STRING, /* FIRST: ABI_FETCH_C_STRING; SECOND: its address, or none */
	ARGUMENT_STRING, /* FIRST: ABI_FETCH_ARRAY of bytes; SECOND: its length */
	ARGUMENT_SLICE, /* FIRST: length; SECOND: capacity, or none */
	ARGUMENT_MAP, /* FIRST: address, 0 = none; SECOND: number of elements */
	ARGUMENT_INTERFACE, /* FIRST: type word, 0 = nil; SECOND: ABI_FETCH_GO_TYPE_NAME */
	ARGUMENT_STRUCT, /* its members follow, one deeper */
	ARGUMENT_ARRAY, /* of `size` elements, of which the first follow, one deeper */
	ARGUMENT_STRUCT_POINTER, /* FIRST: its address, 0 = none; its members follow, one deeper */
	/*
	 * FIRST: the LIBCXX_STRING_BYTES of the value; SECOND: ABI_FETCH_ARRAY of bytes, which
	 * counts if the text is not in the value itself
	 */
	ARGUMENT_LIBCXX_STRING,
	ARGUMENT_KINDS
};

/* Offsets of names count from the beginning of the plan's names; 0 = no name. */
struct argument {
	uint32_t name;
	uint32_t type; /* as the language writes it */
	/* Of ARGUMENT_ENUM: `VALUE=NAME,` for each, VALUE of `size` bytes and hexadecimal. */
	uint32_t enumerators;
	uint16_t size; /* bytes, of numbers and ARGUMENT_BYTES; elements, of ARGUMENT_ARRAY */
	uint8_t kind; /* enum argument_kind */
	uint8_t depth; /* 0 = an argument, else a member of the last one that is less deep */
	uint8_t first, second; /* fetches; ARGUMENT_NO_FETCH = none */
	uint8_t skip; /* bytes of FIRST before the value, of numbers: registers may hold two */
	uint8_t bit_off, bit_size; /* of numbers: the bits of them; 0 = all */
	uint8_t is_signed; /* an ARGUMENT_ENUM may be negative */
	uint8_t reserved[2];
};

enum argument_plan_flags {
	ARGUMENT_PLAN_GO = 1 << 0, /* a null pointer is called nil */
	ARGUMENT_PLAN_OLD_GO_NAMES = 1
				     << 1, /* before Go 1.17: names of types have a fixed length */
};

/* Behind it: the fetches, the arguments, the names. */
struct argument_plan {
	uint32_t magic;
	uint32_t flags; /* enum argument_plan_flags */
	uint32_t fetch_count, count;
	uint32_t names_bytes; /* the last one is 0 */
	uint32_t fetched_bytes; /* how much of abi_fetched.bytes is used */
};

static inline const struct abi_fetch *argument_plan_fetches(const struct argument_plan *plan)
{
	return (const struct abi_fetch *)(plan + 1);
}

static inline const struct argument *argument_plan_items(const struct argument_plan *plan)
{
	return (const struct argument *)(argument_plan_fetches(plan) + plan->fetch_count);
}

static inline const char *argument_plan_name(const struct argument_plan *plan, uint32_t name)
{
	return (const char *)(argument_plan_items(plan) + plan->count) + name;
}

static inline size_t argument_plan_size(const struct argument_plan *plan)
{
	return sizeof(*plan) + plan->fetch_count * sizeof(struct abi_fetch) +
	       plan->count * sizeof(struct argument) + plan->names_bytes;
}

/*
 * Whether the SIZE bytes at BYTES, aligned to 8, are a plan whose numbers are all within bounds and
 * whose names are clean (base/utf8.h). Where its steps lead is not checked: BPF reads what it can.
 */
bool argument_plan_check(const void *bytes, size_t size);

/* ---- making one ----------------------------------------------------------------------------- */

struct argument_builder {
	struct abi_fetch fetches[ABI_FETCHES];
	struct argument items[ARGUMENTS_MAX];
	char names[ARGUMENT_NAMES_BYTES];
	uint32_t fetch_count, count, names_bytes, fetched_bytes, flags;
};

void argument_builder_init(struct argument_builder *b, uint32_t flags);
/* Bytes that are left for values. */
uint32_t argument_builder_room(const struct argument_builder *b);
/*
 * Adds FETCH and gives it a place. Returns its number, or ARGUMENT_NO_FETCH if there is no room for
 * it or it has more steps than there are.
 */
uint8_t argument_builder_fetch(struct argument_builder *b, const struct abi_fetch *fetch);
/* Adds NAME, made clean. Returns its offset, or 0 if there is no room for it. */
uint32_t argument_builder_name(struct argument_builder *b, const char *name, size_t size);
/* Adds an argument of unknown kind. Returns NULL if there is no room. Valid until the next one. */
struct argument *argument_builder_add(struct argument_builder *b, uint8_t depth);
/* Returns the plan, to be freed with free(); NULL without memory. */
struct argument_plan *argument_builder_finish(const struct argument_builder *b);
