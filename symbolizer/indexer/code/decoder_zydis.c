/* SPDX-License-Identifier: Apache-2.0 */
/* x86_64, by Zydis. Opcodes: Intel SDM vol. 2. */
#include <Zydis/Zydis.h>
#include <errno.h>
#include <stdlib.h>

#include "symbolizer/indexer/code/decoder_state.h"

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

/* Operands are not needed, and cost a third of the time. */
static int zydis_init(struct zydis *zydis)
{
	ZyanStatus (*init)(ZydisDecoder *, ZydisMachineMode, ZydisStackWidth) =
		code_symbol("ZydisDecoderInit");
	ZyanStatus (*enable)(ZydisDecoder *, ZydisDecoderMode, ZyanBool) =
		code_symbol("ZydisDecoderEnableMode");

	zydis->decode = code_symbol("ZydisDecoderDecodeInstruction");
	if (!init || !enable || !zydis->decode)
		return -EOPNOTSUPP;
	if (ZYAN_FAILED(init(&zydis->state, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) ||
		ZYAN_FAILED(enable(&zydis->state, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE)))
		return -EOPNOTSUPP;
	return 0;
}

static int zydis_create(struct code_decoder **ret_decoder)
{
	struct zydis *zydis = calloc(1, sizeof(*zydis));
	int err;

	if (!zydis)
		return -ENOMEM;
	err = zydis_init(zydis);
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

static bool zydis_next(const struct code_decoder *decoder, const uint8_t *bytes, size_t left,
	uint64_t address, struct code_instruction *ret_instruction)
{
	const struct zydis *zydis = (const void *)decoder;
	ZydisDecodedInstruction i;

	if (ZYAN_FAILED(zydis->decode(&zydis->state, NULL, bytes, left, &i)))
		return false;
	*ret_instruction = (struct code_instruction){
		.kind = zydis_kind(&i),
		.size = i.length,
		.target = address + i.length + (uint64_t)i.raw.imm[0].value.s,
	};
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
