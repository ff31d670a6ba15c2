/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What instructions of aarch64 do to registers and where they lead, against Capstone: of random
 * words, all registers that it says are written have to be among those that are taken to be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <capstone/capstone.h>
#include <dlfcn.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "symbolizer/indexer/code/decoder.h"
#include "symbolizer/indexer/code/effect.h"

enum { WORDS = 3000000, WORD_BYTES = 4, ADDRESS = 0x400000 };

static struct {
	csh handle;
	cs_insn *instruction;
	bool (*disassemble)(csh, const uint8_t **, size_t *, uint64_t *, cs_insn *);
	cs_err (*registers)(
		csh, const cs_insn *, cs_regs read, uint8_t *, cs_regs written, uint8_t *);
	const char *(*name)(csh, unsigned int);
} capstone;

static int open_capstone(void **)
{
	cs_err (*open)(cs_arch, cs_mode, csh *);
	cs_err (*option)(csh, cs_opt_type, size_t);
	cs_insn *(*allocate)(csh);

	code_libraries_load(true);
	open = dlsym(RTLD_DEFAULT, "cs_open");
	option = dlsym(RTLD_DEFAULT, "cs_option");
	allocate = dlsym(RTLD_DEFAULT, "cs_malloc");
	capstone.disassemble = dlsym(RTLD_DEFAULT, "cs_disasm_iter");
	capstone.registers = dlsym(RTLD_DEFAULT, "cs_regs_access");
	capstone.name = dlsym(RTLD_DEFAULT, "cs_reg_name");
	assert_non_null(open);
	assert_int_equal(open(CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN, &capstone.handle), CS_ERR_OK);
	assert_int_equal(option(capstone.handle, CS_OPT_DETAIL, CS_OPT_ON), CS_ERR_OK);
	capstone.instruction = allocate(capstone.handle);
	return 0;
}

static int close_capstone(void **)
{
	void (*release)(cs_insn *, size_t) = dlsym(RTLD_DEFAULT, "cs_free");
	cs_err (*close)(csh *) = dlsym(RTLD_DEFAULT, "cs_close");

	release(capstone.instruction, 1);
	close(&capstone.handle);
	return 0;
}

static bool disassemble(uint32_t word)
{
	const uint8_t *at = (const uint8_t *)&word;
	size_t left = WORD_BYTES;
	uint64_t address = ADDRESS;

	return capstone.disassemble(capstone.handle, &at, &left, &address, capstone.instruction);
}

/* The number of general register NAME, or of its lower half; -1 for all others. */
static int number_of(const char *name)
{
	char *end = NULL;
	long number;

	if (!strcmp(name, "sp") || !strcmp(name, "wsp"))
		return CODE_SP;
	if (!strcmp(name, "fp"))
		return CODE_X29;
	if (!strcmp(name, "lr"))
		return CODE_X30;
	if ((*name != 'x' && *name != 'w') || name[1] < '0' || name[1] > '9')
		return -1;
	number = strtol(name + 1, &end, 10);
	return *end ? -1 : (int)number;
}

/* Of these, Capstone 4 says that what they read is written. */
static bool only_reads(const char *name)
{
	static const char *const names[] = { "cmp", "cmn", "tst", "msr", "sys", "dc", "ic", "at",
		"tlbi", "svc", "hvc", "smc" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* What it says of instructions that move their base register by 0, or by another register. */
static uint32_t not_written(uint32_t word, const struct code_effect *e)
{
	if ((e->kind == CODE_EFFECT_LOAD || e->kind == CODE_EFFECT_STORE) && !e->step)
		return 1U << e->base;
	if ((word & 0xbe800000) == 0x0c800000) /* ld1 to st4 */
		return 1U << (word >> 16 & 31);
	return 0;
}

/* A bit for each register that Capstone says is written. */
static uint32_t written(void)
{
	cs_regs read, write;
	uint8_t read_count = 0, write_count = 0;
	uint32_t registers = 0;

	if (only_reads(capstone.instruction->mnemonic))
		return 0;
	if (capstone.registers(capstone.handle, capstone.instruction, read, &read_count, write,
		    &write_count) != CS_ERR_OK)
		return 0;
	for (uint8_t i = 0; i < write_count; i++) {
		int number = number_of(capstone.name(capstone.handle, write[i]));

		if (number >= 0)
			registers |= 1U << number;
	}
	return registers;
}

/* A bit for each register whose value E changes. */
static uint32_t changed(const struct code_effect *e)
{
	uint32_t registers = e->writes;

	if (e->kind != CODE_EFFECT_NONE && e->kind != CODE_EFFECT_STORE && e->to < CODE_REGISTERS)
		registers |= 1U << e->to;
	if (e->kind == CODE_EFFECT_LOAD && e->second < CODE_REGISTERS)
		registers |= 1U << e->second;
	if ((e->kind == CODE_EFFECT_LOAD || e->kind == CODE_EFFECT_STORE) && e->step)
		registers |= 1U << e->base;
	return registers;
}

static uint32_t next_word(void)
{
	static uint64_t state = 88172645463325252;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 16);
}

static void test_all_registers_that_are_written(void **)
{
	struct code_effects *effects = NULL;
	unsigned int compared = 0, wrong = 0;

	assert_int_equal(code_effects_create(EM_AARCH64, &effects), 0);
	for (int i = 0; i < WORDS; i++) {
		const uint32_t word = next_word();
		struct code_instruction flow = { 0 };
		struct code_effect effect = { 0 };
		uint32_t missing;

		if (!disassemble(word))
			continue;
		compared++;
		if (!code_effect(
			    effects, (const uint8_t *)&word, WORD_BYTES, ADDRESS, &flow, &effect))
			fail_msg("%#x is %s", word, capstone.instruction->mnemonic);
		missing = written() & ~changed(&effect) & ~not_written(word, &effect);
		if (flow.kind == CODE_CALL)
			missing &= ~(1U << CODE_X30);
		if (!missing || wrong++ > 20)
			continue;
		print_error("%#x writes %#x: %s %s\n", word, missing,
			capstone.instruction->mnemonic, capstone.instruction->op_str);
	}
	code_effects_destroy(effects);
	assert_true(compared > WORDS / 4);
	assert_int_equal(wrong, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_registers_that_are_written),
	};

	return cmocka_run_group_tests(tests, open_capstone, close_capstone);
}
