/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Where a value is: in memory, or in registers and pieces of the stack. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <elfutils/libdw.h>

#include "bpf/abi/fetch.h"

enum { PLACE_PIECES = 16 };

/* An address: a register, steps as in struct abi_fetch, and a number of bytes on top. */
struct place_address {
	uint8_t origin;
	uint8_t step_count;
	uint8_t dereferences;
	int32_t offsets[ABI_FETCH_STEPS];
	int64_t offset;
};

struct place_piece {
	uint32_t off, size; /* within the value */
	uint8_t in_register; /* REGISTER_NONE = in memory, or nowhere */
	bool in_memory;
	struct place_address address; /* if it is in memory */
};

/* No pieces: the value is not there. */
struct place {
	struct place_piece pieces[PLACE_PIECES];
	size_t count;
};

/* What DW_OP_fbreg counts from. */
enum place_base {
	PLACE_BASE_UNKNOWN,
	PLACE_BASE_CFA,
	/* In the frame that the function is about to make; above it are arguments on the stack. */
	PLACE_BASE_FRAME_POINTER,
};

enum place_home { PLACE_NO_HOME, PLACE_HOME, PLACE_HOME_OF_ADDRESS };

void place_add_register(struct place *place, uint32_t off, uint32_t size, uint8_t number);
/* At OFFSET from the stack pointer. */
void place_add_stack(struct place *place, uint32_t off, uint32_t size, int64_t offset);
/* Appends a piece that is nowhere if there is room; false if there is none. */
bool place_add(struct place *place, const struct place_piece *piece);

/*
 * Sets FETCH to read SIZE bytes at OFF of the value. Returns false if they are not all in one
 * piece, or cannot be read. *RET_SKIP is how many bytes of what is fetched come before them.
 */
bool place_fetch(const struct place *place, uint32_t off, uint32_t size,
	struct abi_fetch *ret_fetch, uint8_t *ret_skip);
/* Sets *RET_TARGET to where the pointer at OFF of PLACE points, SIZE bytes. Returns false if the
 * pointer cannot be read, or is too many steps away. */
bool place_dereference(
	const struct place *place, uint32_t off, uint32_t size, struct place *ret_target);
/* Sets FETCH's steps to lead to the beginning of PLACE, which is all in memory. */
bool place_lead_to(const struct place *place, struct abi_fetch *ret_fetch);

/*
 * Where the parameter PARAMETER of SIZE bytes is at ENTRY, the first instruction of a function
 * with the frame base BASE. *RET_HOME: what will be in the frame that the function
 * is about to make, so it is somewhere else as yet.
 */
bool place_at_entry(Dwarf_Die *parameter, Dwarf_Addr entry, uint32_t size, enum place_base base,
	struct place *ret_place, enum place_home *ret_home);
