/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Rules that say where a function's arguments are, for programs without debug information:
 *
 *	FUNCTION(NAME=WHERE:TYPE, …)
 *	main.(*Student).String(s.name=(*+0(%ax)):c64, s.age=(+16(%ax)):s64)
 *
 * WHERE begins with a register at its innermost place. Each step around it adds a number of bytes,
 * and with `*` replaces the address by the word that it points to; at last TYPE is read there.
 * Without any step the register itself is the value. Other parentheses only group.
 *
 *	WHERE   = %REGISTER | (WHERE) | STEP(WHERE)      up to 8 steps
 *	STEP    = [*][+|-]NUMBER | *                     decimal or 0x…
 *	TYPE    = s8 s16 s32 s64 u8 u16 u32 u64 f32 f64 bool, or cBITS: text of BITS/8 bytes
 *
 * FUNCTION may contain parentheses; the list begins at the first one that `NAME=` follows.
 */
#include <stddef.h>

#include "symbolizer/arguments/argument_plan.h"

struct fetch_rule {
	char *function; /* owned */
	struct argument_plan *plan; /* owned; of the function's entry */
};

struct fetch_rule_error {
	size_t column; /* of the mistake, from 1 */
	char message[120];
};

/* Returns -EINVAL with *RET_ERROR, or -ENOMEM. */
int fetch_rule_parse(
	const char *text, struct fetch_rule *ret_rule, struct fetch_rule_error *ret_error);
void fetch_rule_deinit(struct fetch_rule *rule);
