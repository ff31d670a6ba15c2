/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Decodes one function: where it returns, and whether what was found can be trusted. Each part is
 * decoded from its start, one instruction after the other, because no flow of control that can be
 * followed leads to the cases of a switch or to an exception's handlers. Every jump must then lead
 * to the start of an instruction, in the function or outside of it.
 *
 * A probe on anything else than an instruction's first byte corrupts the program, so a function
 * with bytes that are no instruction (a table between its instructions, say) has no returns here.
 */
#include <stddef.h>
#include <stdint.h>

#include "symbolizer/indexer/code/decoder.h"
#include "symbolizer/indexer/elf/elf_image.h"
#include "symbolizer/indexer/writer/work.h"
#include "symbolizer/indexer/writer/writer_bodies.h"

/* A range of a function's code. */
struct code_part {
	uint64_t low, high;
	size_t first_bit; /* of its bytes in `starts` */
	uint64_t tail; /* the code from here on ends without a jump, return or stop; high = none */
};

/* Reused for all functions of a file; the first four are set by the owner. */
struct code_body {
	const struct code_decoder *decoder;
	const struct elf_image *image;
	const struct writer_bodies *bodies; /* for moved parts; NULL = none */
	struct work *work; /* NULL = not bounded */

	/* The result for the last function. */
	uint32_t flags; /* enum index_function_flags */
	uint64_t *returns; /* addresses, ascending */
	size_t return_count, return_capacity;
	/*
	 * Where a call returns behind which the function begins again, as Go's prologue calls
	 * morestack. 0: there is none, or there are several.
	 */
	uint64_t restart;

	struct code_part *parts; /* with moved ones */
	size_t part_count, part_capacity;
	uint64_t *targets; /* of direct jumps */
	size_t target_count, target_capacity;
	size_t restart_count;
	uint8_t *starts; /* a bit for each byte of all parts: an instruction starts here */
	size_t start_capacity;
};

void code_body_deinit(struct code_body *b);
/* Decodes FUNCTION. Returns -ENOMEM; anything wrong with the code is in the flags. */
int code_body_decode(struct code_body *b, const struct writer_body *function);
