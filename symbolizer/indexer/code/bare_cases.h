/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Cases of switches in code without tables. Nothing is known to lead to them but a jump through a
 * table of addresses, which is not read: compilers and assembly have many forms of it. They lie
 * behind the jump, or before it in the same function, and what they do to the stack tells them from
 * functions: they go on with the frame that is open at the jump, and an entry would not. What is
 * behind a hlt is looked at in the same way: musl ends programs by it and does not tell the
 * compiler so.
 */
#include "symbolizer/indexer/code/bare_blocks.h"

/* Notes the blocks that may be cases. */
void bare_note_candidates(const struct bare *b);
/* The next block behind AFTER that may be a case of the switch that BLOCK ends with, or NULL. */
struct bare_block *bare_next_candidate(
	const struct bare *b, struct bare_block *block, struct bare_block *after);
/*
 * Whether CANDIDATE is a case of the switch that BLOCK ends with, in STATE: all ways from there
 * agree with that state, and at least one leads to a block of the same function or returns.
 */
bool bare_is_case(const struct bare *b, struct bare_block *candidate, struct bare_block *block,
	const struct bare_state *state);
/* The next block behind AFTER that was found to be a case of it, or NULL. */
struct bare_block *bare_next_case(
	const struct bare *b, struct bare_block *block, struct bare_block *after);
