/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/code/known.h"

#include <string.h>

#include "base/cleanup.h"
#include "bpf/abi/unwind.h"

enum { MAX_BYTES = 15, RT_SIGRETURN = 15, EXIT = 60 /* system calls */ };

static const struct {
	struct known_code code;
	uint8_t size;
	uint8_t bytes[MAX_BYTES];
} known[] = {
	/* What signal handlers return to: mov $15,%rax; syscall. */
	{ { ABI_CFA_SIGNAL, 2 }, 9, { 0x48, 0xc7, 0xc0, RT_SIGRETURN, 0, 0, 0, 0x0f, 0x05 } },
	/* The same: mov $15,%eax; syscall. */
	{ { ABI_CFA_SIGNAL, 2 }, 7, { 0xb8, RT_SIGRETURN, 0, 0, 0, 0x0f, 0x05 } },
	/*
	 * A new thread calls its function and exits with the result: xor %ebp,%ebp; pop %rdi;
	 * call *%r9; mov %eax,%edi; xor %eax,%eax; mov $60,%al; syscall; hlt.
	 */
	{ { ABI_CFA_END, 8 }, 15,
		{ 0x31, 0xed, 0x5f, 0x41, 0xff, 0xd1, 0x89, 0xc7, 0x31, 0xc0, 0xb0, EXIT, 0x0f,
			0x05, 0xf4 } },
};

bool known_code_at(const uint8_t *bytes, size_t left, struct known_code *ret_code)
{
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (left < known[i].size || memcmp(bytes, known[i].bytes, known[i].size))
			continue;
		*ret_code = known[i].code;
		return true;
	}
	return false;
}
