/* SPDX-License-Identifier: Apache-2.0 */
/* aarch64, by Capstone. Encodings: Arm Architecture Reference Manual, C4.1. */
#include <capstone/capstone.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolizer/indexer/code/decoder_state.h"

enum { WORD_BYTES = 4 };

typedef bool capstone_disassemble(
	csh handle, const uint8_t **code, size_t *size, uint64_t *address, cs_insn *insn);

struct capstone {
	struct code_decoder decoder;
	csh handle;
	cs_insn *instruction; /* scratch */
	capstone_disassemble *disassemble;
};

static bool capstone_fits(void)
{
	unsigned int (*version)(int *, int *) = code_symbol("cs_version");
	int major = 0, minor = 0;

	if (!version)
		return false;
	version(&major, &minor);
	return major == CS_API_MAJOR;
}

static void capstone_destroy(struct code_decoder *decoder)
{
	struct capstone *capstone = (void *)decoder;
	cs_err (*close)(csh *) = code_symbol("cs_close");
	void (*release)(cs_insn *, size_t) = code_symbol("cs_free");

	if (capstone->instruction)
		release(capstone->instruction, 1);
	if (capstone->handle)
		close(&capstone->handle);
	free(capstone);
}

static int capstone_init(struct capstone *capstone)
{
	cs_err (*open)(cs_arch, cs_mode, csh *) = code_symbol("cs_open");
	cs_insn *(*allocate)(csh) = code_symbol("cs_malloc");

	capstone->disassemble = code_symbol("cs_disasm_iter");
	if (!open || !allocate || !capstone->disassemble || !code_symbol("cs_close") ||
		!code_symbol("cs_free"))
		return -EOPNOTSUPP;
	switch (open(CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN, &capstone->handle)) {
	case CS_ERR_OK:
		break;
	case CS_ERR_MEM:
		return -ENOMEM;
	default: /* a build of the library without this machine */
		return -EOPNOTSUPP;
	}
	capstone->instruction = allocate(capstone->handle);
	return capstone->instruction ? 0 : -ENOMEM;
}

static int capstone_create(struct code_decoder **ret_decoder)
{
	struct capstone *capstone = calloc(1, sizeof(*capstone));
	int err;

	if (!capstone)
		return -ENOMEM;
	capstone->decoder.machine = &code_machine_aarch64;
	err = capstone_init(capstone);
	if (err) {
		capstone_destroy(&capstone->decoder);
		return err;
	}
	*ret_decoder = &capstone->decoder;
	return 0;
}

/* Instructions with pointer authentication that Capstone 4 does not know. */
static bool word_is_return(uint32_t word)
{
	return word == 0xd65f0bff || word == 0xd65f0fff; /* retaa, retab */
}

static bool word_is_indirect_jump(uint32_t word)
{
	return (word & 0xfefff800) == 0xd61f0800; /* braa, brab, braaz, brabz */
}

static bool word_is_call(uint32_t word)
{
	return (word & 0xfefff800) == 0xd63f0800; /* blraa, blrab, blraaz, blrabz */
}

static bool word_kind(uint32_t word, enum code_kind *ret_kind)
{
	if (word_is_return(word))
		*ret_kind = CODE_RETURN;
	else if (word_is_indirect_jump(word))
		*ret_kind = CODE_INDIRECT_JUMP;
	else if (word_is_call(word))
		*ret_kind = CODE_CALL;
	else
		return false;
	return true;
}

/*
 * Capstone 4 does not know all instructions (atomics of v8.1, SVE). Only words of the class
 * "branches, exception generating and system instructions" can change the flow of control, so those
 * of other classes may be unknown; "reserved" ones are none.
 */
static bool word_is_plain(uint32_t word)
{
	uint32_t class = word >> 25 & 0xf; /* C4.1, op0 */

	if ((word & 0xffc00000) ==
		0xd5000000) /* msr, mrs, hints: system registers of later versions */
		return true;
	return class != 0 && class != 1 && class != 3 && (class & 0xe) != 0xa;
}

/* The distance in BITS of WORD from LOW on, in words. */
static uint64_t word_distance(uint32_t word, unsigned int low, unsigned int bits)
{
	uint64_t sign = UINT64_C(1) << (bits - 1);
	uint64_t value = word >> low & ((sign << 1) - 1);

	return ((value ^ sign) - sign) * WORD_BYTES;
}

static enum code_kind capstone_kind(unsigned int id, uint32_t word, uint64_t *distance)
{
	switch (id) {
	case ARM64_INS_RET:
		return CODE_RETURN;
	case ARM64_INS_BL:
	case ARM64_INS_BLR:
		return CODE_CALL;
	case ARM64_INS_BR:
	case ARM64_INS_ERET:
		return CODE_INDIRECT_JUMP;
	case ARM64_INS_B: /* b.cond, too */
		if (word >> 26 == 5) {
			*distance = word_distance(word, 0, 26);
			return CODE_JUMP;
		}
		*distance = word_distance(word, 5, 19);
		return CODE_BRANCH;
	case ARM64_INS_CBZ:
	case ARM64_INS_CBNZ:
		*distance = word_distance(word, 5, 19);
		return CODE_BRANCH;
	case ARM64_INS_TBZ:
	case ARM64_INS_TBNZ:
		*distance = word_distance(word, 5, 14);
		return CODE_BRANCH;
	case ARM64_INS_BRK:
	case ARM64_INS_HLT:
		return CODE_STOP;
	case ARM64_INS_NOP:
		return CODE_NOP;
	default:
		return CODE_PLAIN;
	}
}

static bool capstone_next(const struct code_decoder *decoder, const uint8_t *bytes, size_t left,
	uint64_t address, struct code_instruction *ret_instruction)
{
	const struct capstone *capstone = (const void *)decoder;
	struct code_instruction result = { .size = WORD_BYTES };
	uint64_t distance = 0, at = address;
	uint32_t word;

	if (left < WORD_BYTES)
		return false;
	memcpy(&word, bytes, sizeof(word));
	if (!(word >> 16)) {
		result.kind = CODE_STOP; /* udf: 0 to 0xffff */
	} else if (!word_kind(word, &result.kind)) {
		left = WORD_BYTES;
		if (!capstone->disassemble(
			    capstone->handle, &bytes, &left, &at, capstone->instruction)) {
			*ret_instruction = result;
			return word_is_plain(word);
		}
		result.kind = capstone_kind(capstone->instruction->id, word, &distance);
		result.target = address + distance;
	}
	*ret_instruction = result;
	return true;
}

const struct code_machine code_machine_aarch64 = {
	.library = FATHOM_CAPSTONE_LIBRARY,
	.fits = capstone_fits,
	.create = capstone_create,
	.destroy = capstone_destroy,
	.decode = capstone_next,
};
