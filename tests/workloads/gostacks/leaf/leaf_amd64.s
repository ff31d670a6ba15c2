// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

TEXT ·Spin(SB), NOSPLIT|NOFRAME, $0-0
	MOVQ	$2000, CX
loop:
	DECQ	CX
	JNZ	loop
	RET

TEXT ·Clobber(SB), NOSPLIT|NOFRAME, $0-0
	MOVQ	BP, R8
	MOVQ	$2000, BP
loop:
	DECQ	BP
	JNZ	loop
	MOVQ	R8, BP
	RET

TEXT ·Through(SB), NOSPLIT|NOFRAME, $0-0
	CALL	·Spin(SB)
	RET
