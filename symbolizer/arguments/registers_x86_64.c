/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "symbolizer/arguments/registers.h"

/* Words of struct pt_regs. */
enum { R15, R14, R13, R12, BP, BX, R11, R10, R9, R8, AX, CX, DX, SI, DI, SP = 19 };

static const struct {
	const char *name; /* without the prefix r or e */
	uint8_t number;
} names[] = {
	{ "ax", AX },
	{ "bx", BX },
	{ "cx", CX },
	{ "dx", DX },
	{ "si", SI },
	{ "di", DI },
	{ "bp", BP },
	{ "sp", SP },
	{ "8", R8 },
	{ "9", R9 },
	{ "10", R10 },
	{ "11", R11 },
	{ "12", R12 },
	{ "13", R13 },
	{ "14", R14 },
	{ "15", R15 },
};

uint8_t register_by_name(const char *name, size_t size)
{
	bool is_prefixed = size && (name[0] == 'r' || name[0] == 'e');

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *rest = names[i].name;
		bool is_numbered = rest[0] >= '0' && rest[0] <= '9';

		if (is_numbered ? size && name[0] == 'r' && strlen(rest) == size - 1 &&
					  !memcmp(rest, name + 1, size - 1)
				: strlen(rest) == size - is_prefixed &&
					  !memcmp(rest, name + is_prefixed, size - is_prefixed))
			return names[i].number;
	}
	return REGISTER_NONE;
}

uint8_t register_by_dwarf(uint64_t number)
{
	static const uint8_t numbers[] = { AX, DX, CX, BX, SI, DI, BP, SP, R8, R9, R10, R11, R12,
		R13, R14, R15 };

	return number < ARRAY_SIZE(numbers) ? numbers[number] : REGISTER_NONE;
}

/* Go's abi-internal.md, amd64. */
uint8_t register_of_go(size_t number)
{
	static const uint8_t numbers[] = { AX, BX, CX, DI, SI, R8, R9, R10, R11 };

	return number < ARRAY_SIZE(numbers) ? numbers[number] : REGISTER_NONE;
}

/* System V ABI, AMD64 3.2.3. */
uint8_t register_of_c(size_t number)
{
	static const uint8_t numbers[] = { DI, SI, DX, CX, R8, R9 };

	return number < ARRAY_SIZE(numbers) ? numbers[number] : REGISTER_NONE;
}

uint8_t register_of_c_result(size_t number)
{
	static const uint8_t registers[] = { AX, DX };

	return number < ARRAY_SIZE(registers) ? registers[number] : REGISTER_NONE;
}

const char *register_names(void)
{
	return "ax, bx, cx, dx, si, di, bp, sp, r8 to r15";
}
