// SPDX-License-Identifier: Apache-2.0
#include "textflag.h"

// func Sum(f func(int) int, n int) int
TEXT ·Sum(SB), 0, $40-24
	MOVQ $0, total-8(SP)
	MOVQ n+8(FP), CX
	MOVQ CX, left-16(SP)
again:
	MOVQ left-16(SP), CX
	TESTQ CX, CX
	JLE  done
	DECQ CX
	MOVQ CX, left-16(SP)
	CALL ·step(SB)
	MOVQ total-8(SP), AX
	ADDQ $3, AX
	MOVQ AX, total-8(SP)
	JMP  again
done:
	MOVQ total-8(SP), AX
	MOVQ AX, ret+16(FP)
	RET

TEXT ·step(SB), NOSPLIT|NOFRAME, $0-0
	NOP
	RET

// func Twice(n int) int
TEXT ·Twice(SB), NOSPLIT, $0-16
	MOVQ n+0(FP), AX
	ADDQ AX, AX
	MOVQ AX, ret+8(FP)
	RET
