# SPDX-License-Identifier: Apache-2.0
# Code far away from the rest, which the linker puts into a segment with a load bias of its own; some of
# it has no call frame information.
	.section far_code, "ax", @progbits
	.globl far_away
	.type far_away, @function
far_away:
	.cfi_startproc
	push %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	mov %rsp, %rbp
	.cfi_def_cfa_register %rbp
	pop %rbp
	.cfi_def_cfa %rsp, 8
	ret
	.cfi_endproc
	.size far_away, . - far_away
	.fill 40, 1, 0x90
	.globl far_and_bare
	.type far_and_bare, @function
far_and_bare:
	.cfi_startproc
	sub $24, %rsp
	.cfi_def_cfa_offset 32
	add $24, %rsp
	.cfi_def_cfa_offset 8
	ret
	.cfi_endproc
	.size far_and_bare, . - far_and_bare
	.section .note.GNU-stack, "", @progbits
