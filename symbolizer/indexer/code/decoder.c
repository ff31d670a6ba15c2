/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/code/decoder.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>

#include "symbolizer/indexer/code/decoder_state.h"

static const struct code_machine *code_machine(uint16_t machine)
{
	switch (machine) {
	case EM_X86_64:
		return &code_machine_x86_64;
	case EM_AARCH64:
		return &code_machine_aarch64;
	default:
		return NULL;
	}
}

/* The dynamic linker searches loaded libraries after this program, without a system call. */
void *code_symbol(const char *name)
{
	return dlsym(RTLD_DEFAULT, name);
}

void code_libraries_load(bool functions)
{
	(void)dlopen(code_machine_x86_64.library, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
	if (functions)
		(void)dlopen(code_machine_aarch64.library, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE);
}

int code_decoder_create(uint16_t machine, struct code_decoder **ret_decoder)
{
	const struct code_machine *m = code_machine(machine);

	return m && m->fits() ? m->create(ret_decoder) : -EOPNOTSUPP;
}

void code_decoder_destroy(struct code_decoder *decoder)
{
	if (decoder)
		decoder->machine->destroy(decoder);
}

bool code_decode(const struct code_decoder *decoder, const uint8_t *bytes, size_t left,
	uint64_t address, struct code_instruction *ret_instruction)
{
	return decoder->machine->decode(decoder, bytes, left, address, ret_instruction);
}

bool code_is_skippable(const struct code_decoder *decoder, uint8_t byte)
{
	return decoder->machine->skippable && byte == decoder->machine->skippable;
}
