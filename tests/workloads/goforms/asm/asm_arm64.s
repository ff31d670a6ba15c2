// SPDX-License-Identifier: Apache-2.0
#include "textflag.h"

// func Loops(n int) int
TEXT ·Loops(SB), NOSPLIT, $16-16
	MOVD n+0(FP), R1
	MOVD $0, R0
	CMP  $0, R1
	BLE  none
again:
	ADD  $3, R0
	SUBS $1, R1
	BNE  again
	MOVD R0, ret+8(FP)
	RET
none:
	MOVD ZR, ret+8(FP)
	RET
