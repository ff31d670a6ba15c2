// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

TEXT ·Spin(SB), NOSPLIT|NOFRAME, $0-0
	MOVD	$2000, R0
loop:
	SUBS	$1, R0, R0
	BNE	loop
	RET

TEXT ·Clobber(SB), NOSPLIT|NOFRAME, $0-0
	MOVD	R29, R1
	MOVD	$2000, R29
loop:
	SUBS	$1, R29, R29
	BNE	loop
	MOVD	R1, R29
	RET

TEXT ·Through(SB), NOSPLIT, $0-0
	CALL	·Spin(SB)
	RET
