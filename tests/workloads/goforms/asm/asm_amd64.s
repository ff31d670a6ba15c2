// SPDX-License-Identifier: Apache-2.0
#include "textflag.h"

// func Loops(n int) int
TEXT ·Loops(SB), NOSPLIT, $8-16
	MOVQ n+0(FP), CX
	MOVQ $0, AX
	TESTQ CX, CX
	JLE  none
again:
	ADDQ $3, AX
	DECQ CX
	JNZ  again
	MOVQ AX, ret+8(FP)
	RET
none:
	MOVQ $0, ret+8(FP)
	RET
