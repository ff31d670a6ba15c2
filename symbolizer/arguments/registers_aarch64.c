/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <string.h>

#include "symbolizer/arguments/registers.h"

/* Words of struct user_pt_regs. */
enum { X0 = 0, FP = 29, LR = 30, SP = 31, GO_REGISTERS = 16, C_REGISTERS = 8, C_RESULTS = 2 };

static bool register_is(const char *name, size_t size, const char *wanted)
{
	return strlen(wanted) == size && !memcmp(name, wanted, size);
}

uint8_t register_by_name(const char *name, size_t size)
{
	unsigned int number = 0;

	if (register_is(name, size, "sp"))
		return SP;
	if (register_is(name, size, "lr"))
		return LR;
	if (register_is(name, size, "fp"))
		return FP;
	if (size < 2 || size > 3 || name[0] != 'x' || (size == 3 && name[1] == '0'))
		return REGISTER_NONE;
	for (size_t i = 1; i < size; i++) {
		if (name[i] < '0' || name[i] > '9')
			return REGISTER_NONE;
		number = number * 10 + (unsigned int)(name[i] - '0');
	}
	return number <= LR ? (uint8_t)number : REGISTER_NONE;
}

uint8_t register_by_dwarf(uint64_t number)
{
	return number <= SP ? (uint8_t)number : REGISTER_NONE;
}

/* Go's abi-internal.md, arm64. */
uint8_t register_of_go(size_t number)
{
	return number < GO_REGISTERS ? (uint8_t)(X0 + number) : REGISTER_NONE;
}

/* Procedure Call Standard for the Arm 64-bit Architecture, 6.4. */
uint8_t register_of_c(size_t number)
{
	return number < C_REGISTERS ? (uint8_t)(X0 + number) : REGISTER_NONE;
}

uint8_t register_of_c_result(size_t number)
{
	return number < C_RESULTS ? (uint8_t)(X0 + number) : REGISTER_NONE;
}

const char *register_names(void)
{
	return "x0 to x30, fp, lr, sp";
}
