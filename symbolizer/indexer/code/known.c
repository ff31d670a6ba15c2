/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/code/known.h"

#include <elf.h>
#include <string.h>

#include "base/cleanup.h"
#include "bpf/abi/unwind.h"

enum { MAX_BYTES = 16 };

/* System calls: of x86_64, and of aarch64. */
enum { RT_SIGRETURN = 15, EXIT = 60 };
enum { A64_RT_SIGRETURN = 139, A64_EXIT = 93 };

#define A64_MOV_X8(number) 0x08 | (uint8_t)((number) << 5), (uint8_t)((number) >> 3), 0x80, 0xd2
#define A64_SVC 0x01, 0x00, 0x00, 0xd4

static const struct {
	struct known_code code;
	uint16_t machine;
	uint8_t size;
	uint8_t bytes[MAX_BYTES];
} known[] = {
	/* What signal handlers return to: mov $15,%rax; syscall. */
	{ { ABI_CFA_SIGNAL, 2 }, EM_X86_64, 9,
		{ 0x48, 0xc7, 0xc0, RT_SIGRETURN, 0, 0, 0, 0x0f, 0x05 } },
	/* The same: mov $15,%eax; syscall. */
	{ { ABI_CFA_SIGNAL, 2 }, EM_X86_64, 7, { 0xb8, RT_SIGRETURN, 0, 0, 0, 0x0f, 0x05 } },
	/*
	 * A new thread calls its function and exits with the result: xor %ebp,%ebp; pop %rdi;
	 * call *%r9; mov %eax,%edi; xor %eax,%eax; mov $60,%al; syscall; hlt.
	 */
	{ { ABI_CFA_END, 8 }, EM_X86_64, 15,
		{ 0x31, 0xed, 0x5f, 0x41, 0xff, 0xd1, 0x89, 0xc7, 0x31, 0xc0, 0xb0, EXIT, 0x0f,
			0x05, 0xf4 } },
	/*
	 * Where a context of Boost's make_fcontext() begins, also PHP's fibers: push %rbp; jmp
	 * *%rbx; xor %rdi,%rdi; call _exit. What was pushed is the address of the third
	 * instruction: the context's function returns there.
	 */
	{ { ABI_CFA_END, 4 }, EM_X86_64, 7, { 0x55, 0xff, 0xe3, 0x48, 0x31, 0xff, 0xe8 } },
	/* What signal handlers return to: mov x8, #139; svc #0. */
	{ { ABI_CFA_SIGNAL, 2 }, EM_AARCH64, 8, { A64_MOV_X8(A64_RT_SIGRETURN), A64_SVC } },
	/* A new thread, as above: ldp x1, x0, [sp], #16; blr x1; mov x8, #93; svc #0. */
	{ { ABI_CFA_END, 4 }, EM_AARCH64, 16,
		{ 0xe1, 0x03, 0xc1, 0xa8, 0x20, 0x00, 0x3f, 0xd6, A64_MOV_X8(A64_EXIT), A64_SVC } },
};

bool known_code_at(uint16_t machine, const uint8_t *bytes, size_t left, struct known_code *ret_code)
{
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (machine != known[i].machine || left < known[i].size ||
			memcmp(bytes, known[i].bytes, known[i].size))
			continue;
		*ret_code = known[i].code;
		return true;
	}
	return false;
}
