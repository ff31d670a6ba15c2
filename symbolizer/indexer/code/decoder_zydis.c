/* SPDX-License-Identifier: Apache-2.0 */
/* x86_64, by Zydis. Opcodes: Intel SDM vol. 2. */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "symbolizer/indexer/code/decoder_state.h"
#include "symbolizer/indexer/code/decoder_zydis.h"

enum {
	OPCODE_RET_IMMEDIATE = 0xc2,
	OPCODE_RET = 0xc3, /* 0xca and 0xcb are far returns, which no compiler makes */
	PREFIX_LOCK = 0xf0,
};

typedef ZyanStatus zydis_decode(const ZydisDecoder *decoder, ZydisDecoderContext *context,
	const void *buffer, ZyanUSize length, ZydisDecodedInstruction *instruction);

struct zydis {
	struct code_decoder decoder;
	ZydisDecoder state;
	zydis_decode *decode;
};

static bool zydis_fits(void)
{
	ZyanU64 (*version)(void) = code_symbol("ZydisGetVersion");

	return version && ZYDIS_VERSION_MAJOR(version()) == ZYDIS_VERSION_MAJOR(ZYDIS_VERSION) &&
	       ZYDIS_VERSION_MINOR(version()) == ZYDIS_VERSION_MINOR(ZYDIS_VERSION);
}

int zydis_init(ZydisDecoder *ret_state, bool flow_only)
{
	ZyanStatus (*init)(ZydisDecoder *, ZydisMachineMode, ZydisStackWidth) =
		code_symbol("ZydisDecoderInit");
	ZyanStatus (*enable)(ZydisDecoder *, ZydisDecoderMode, ZyanBool) =
		code_symbol("ZydisDecoderEnableMode");

	if (!init || !enable ||
		ZYAN_FAILED(init(ret_state, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) ||
		ZYAN_FAILED(enable(ret_state, ZYDIS_DECODER_MODE_MINIMAL, flow_only)))
		return -EOPNOTSUPP;
	return 0;
}

static int zydis_create(struct code_decoder **ret_decoder)
{
	struct zydis *zydis = calloc(1, sizeof(*zydis));
	int err;

	if (!zydis)
		return -ENOMEM;
	zydis->decode = code_symbol("ZydisDecoderDecodeInstruction");
	err = zydis->decode ? zydis_init(&zydis->state, true) : -EOPNOTSUPP;
	if (err) {
		free(zydis);
		return err;
	}
	zydis->decoder.machine = &code_machine_x86_64;
	*ret_decoder = &zydis->decoder;
	return 0;
}

static void zydis_destroy(struct code_decoder *decoder)
{
	free((struct zydis *)(void *)decoder);
}

/* An instruction whose immediate is a distance: jumps, branches and calls. */
static enum code_kind zydis_relative_kind(const ZydisDecodedInstruction *i)
{
	switch (i->mnemonic) {
	case ZYDIS_MNEMONIC_CALL:
		return CODE_CALL;
	case ZYDIS_MNEMONIC_JMP:
		return CODE_JUMP;
	default: /* jcc, jrcxz, loop, xbegin */
		return CODE_BRANCH;
	}
}

static enum code_kind zydis_kind(const ZydisDecodedInstruction *i)
{
	if (i->raw.imm[0].is_relative)
		return zydis_relative_kind(i);
	switch (i->mnemonic) {
	case ZYDIS_MNEMONIC_RET:
		return i->opcode == OPCODE_RET || i->opcode == OPCODE_RET_IMMEDIATE
			       ? CODE_RETURN
			       : CODE_INDIRECT_JUMP;
	case ZYDIS_MNEMONIC_CALL:
		return CODE_CALL;
	case ZYDIS_MNEMONIC_JMP:
		/* disp32(%rip) */
		return i->raw.modrm.mod == 0 && i->raw.modrm.rm == 5 ? CODE_LEAVE
								     : CODE_INDIRECT_JUMP;
	case ZYDIS_MNEMONIC_IRET:
	case ZYDIS_MNEMONIC_IRETD:
	case ZYDIS_MNEMONIC_IRETQ:
	case ZYDIS_MNEMONIC_SYSRET:
	case ZYDIS_MNEMONIC_SYSEXIT:
		return CODE_INDIRECT_JUMP;
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_INT3:
		return CODE_STOP;
	case ZYDIS_MNEMONIC_NOP:
		return CODE_NOP;
	default:
		return CODE_PLAIN;
	}
}

/*
 * Whether uprobes treat the one-byte instruction with OPCODE as one that they execute as it is and
 * that leads to the next one, so that what else has this opcode byte is safe, too: arithmetic,
 * moves, string instructions. The others are emulated (0x70 to 0x7f, 0x90, 0xe8 to 0xeb), get the
 * registers of a call or a return afterwards (0x9a, 0x9d, 0xc2, 0xc3, 0xca, 0xcb, 0xff), are
 * refused, or no compiler begins a function with them.
 */
static bool opcode_is_plain(uint8_t opcode)
{
	static const struct {
		uint8_t first, last;
	} plain[] = {
		{ 0x10, 0x15 }, /* moves, unpack */
		{ 0x28, 0x2f }, /* moves, conversions, comparisons */
		{ 0x50, 0x5f }, /* arithmetic; push and pop are longer than two bytes here */
		{ 0x98, 0x99 }, /* multiply and add, as are the next two */
		{ 0xa8, 0xaf }, { 0xb8, 0xbf }, { 0xc6, 0xc6 }, /* shuffle */
		{ 0xf2, 0xf3 }, /* bits in general registers, as is the next one */
		{ 0xf5, 0xf7 }, { 0xfe, 0xfe }, /* vpaddd */
	};

	for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
		if (opcode >= plain[i].first && opcode <= plain[i].last)
			return true;
	return false;
}

static bool zydis_is_misread(const ZydisDecodedInstruction *i)
{
	switch (i->encoding) {
	case ZYDIS_INSTRUCTION_ENCODING_LEGACY:
	case ZYDIS_INSTRUCTION_ENCODING_3DNOW:
		return false;
	case ZYDIS_INSTRUCTION_ENCODING_VEX:
		return !opcode_is_plain(i->opcode);
	default: /* EVEX, XOP: older kernels may not know them */
		return true;
	}
}

struct code_instruction zydis_flow(const ZydisDecodedInstruction *i, uint64_t address)
{
	return (struct code_instruction){
		.kind = zydis_kind(i),
		.size = i->length,
		.is_misread = zydis_is_misread(i),
		.target = i->raw.imm[0].is_relative
				  ? address + i->length + (uint64_t)i->raw.imm[0].value.s
				  : 0,
	};
}

static bool zydis_next(const struct code_decoder *decoder, const uint8_t *bytes, size_t left,
	uint64_t address, struct code_instruction *ret_instruction)
{
	const struct zydis *zydis = (const void *)decoder;
	ZydisDecodedInstruction i;

	if (ZYAN_FAILED(zydis->decode(&zydis->state, NULL, bytes, left, &i)))
		return false;
	*ret_instruction = zydis_flow(&i, address);
	return true;
}

const struct code_machine code_machine_x86_64 = {
	.library = FATHOM_ZYDIS_LIBRARY,
	.fits = zydis_fits,
	.create = zydis_create,
	.destroy = zydis_destroy,
	.decode = zydis_next,
	.skippable = PREFIX_LOCK,
};
