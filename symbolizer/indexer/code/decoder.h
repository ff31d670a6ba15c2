/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Decodes instructions of x86_64 (by Zydis) and aarch64 (by Capstone), as far as the flow of
 * control goes. The libraries are loaded on demand and not linked, because every process of this
 * program, each sandboxed child included, would load them at its start: 0.15 ms and 0.4 MB for
 * Zydis, 0.7 ms and 3.7 MB for Capstone. Inside the sandbox nothing can be loaded, so
 * code_libraries_load() comes before it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum code_kind {
	CODE_PLAIN, /* goes on with the next one */
	CODE_NOP,
	CODE_CALL, /* goes on, if the callee returns */
	CODE_RETURN, /* to the address on the stack, or in a register */
	CODE_JUMP, /* to `target` */
	CODE_BRANCH, /* to `target`, or goes on */
	CODE_LEAVE, /* to the address in a fixed place, a slot of the global offset table */
	CODE_INDIRECT_JUMP, /* to an unknown place; far returns, too */
	CODE_STOP, /* never goes on: ud2, hlt, int3, udf, brk */
};

struct code_instruction {
	enum code_kind kind;
	uint8_t size;
	/*
	 * A probe on it may corrupt the program: Linux's uprobes for x86 look at the opcode byte
	 * without the map that a VEX or EVEX prefix chooses (arch_uprobe_analyze_insn() in
	 * arch/x86/kernel/uprobes.c, seen in 5.10 to 6.18). So vpor (VEX 0xeb) is carried out as a
	 * jump and does nothing, vcmpsd (VEX 0xc2) is taken for a return.
	 */
	bool is_misread;
	/* Of CODE_JUMP, CODE_BRANCH and CODE_CALL. 0: by a pointer. */
	uint64_t target;
};

struct code_decoder;

/*
 * Loads the libraries that are installed into this process, for good: those that unwind tables
 * need (bare.h), or with FUNCTIONS all. Which machine's code a file has is not known before the
 * sandbox.
 */
void code_libraries_load(bool functions);

/*
 * A decoder for MACHINE (EM_*). Opens no file. -EOPNOTSUPP if the library is not loaded, is of
 * another version than the one compiled with, or MACHINE is another one.
 */
int code_decoder_create(uint16_t machine, struct code_decoder **ret_decoder);
void code_decoder_destroy(struct code_decoder *decoder);
/*
 * Decodes the instruction at BYTES, of which LEFT are readable; it is loaded at ADDRESS. False if
 * there is none.
 */
bool code_decode(const struct code_decoder *decoder, const uint8_t *bytes, size_t left,
	uint64_t address, struct code_instruction *ret_instruction);
/* Returns true if BYTE is a prefix that jumps may skip: the C library jumps over `lock`. */
bool code_is_skippable(const struct code_decoder *decoder, uint8_t byte);
