/* SPDX-License-Identifier: Apache-2.0 */
/* Which words are instructions of aarch64, by Capstone. */
#include <capstone/capstone.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolizer/indexer/code/a64.h"
#include "symbolizer/indexer/code/decoder_state.h"

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

/* Returns, jumps and calls with pointer authentication, which Capstone 4 does not know. */
static bool word_is_authenticated(uint32_t word)
{
	return word == 0xd65f0bff || word == 0xd65f0fff || /* retaa, retab */
	       (word & 0xfefff800) == 0xd61f0800 || /* braa, brab, braaz, brabz */
	       (word & 0xfefff800) == 0xd63f0800; /* blraa, blrab, blraaz, blrabz */
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

static bool capstone_next(const struct code_decoder *decoder, const uint8_t *bytes, size_t left,
	uint64_t address, struct code_instruction *ret_instruction)
{
	const struct capstone *capstone = (const void *)decoder;
	uint64_t at = address;
	uint32_t word;

	if (left < A64_BYTES)
		return false;
	memcpy(&word, bytes, sizeof(word));
	*ret_instruction = a64_flow(word, address);
	left = A64_BYTES;
	return !(word >> 16) || word_is_authenticated(word) || word_is_plain(word) ||
	       capstone->disassemble(capstone->handle, &bytes, &left, &at, capstone->instruction);
}

const struct code_machine code_machine_aarch64 = {
	.library = FATHOM_CAPSTONE_LIBRARY,
	.fits = capstone_fits,
	.create = capstone_create,
	.destroy = capstone_destroy,
	.decode = capstone_next,
};
