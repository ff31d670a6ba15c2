/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/index/unwind_rule.h"

#include "base/cleanup.h"

enum { WORD = ABI_RULE_WORD_BYTES };

static bool ra_place(const struct abi_unwind_rule *rule, uint32_t *ret_place)
{
	if (!rule->ra_off)
		*ret_place = ABI_RULE_RA_NOWHERE;
	else if (rule->ra_off == -WORD)
		*ret_place = ABI_RULE_RA_BELOW_CFA;
	else if (rule->ra_off == rule->fp_off + WORD)
		*ret_place = ABI_RULE_RA_ABOVE_FP;
	else
		return false;
	return true;
}

bool unwind_rule_narrow(const struct abi_unwind_rule *rule, uint32_t *ret_bits)
{
	uint32_t place;

	if (rule->cfa >= ABI_RULE_WIDE || rule->fp > ABI_RULE_FP || rule->ra > ABI_RULE_RA ||
		rule->extra > ABI_RULE_EXTRA || !ra_place(rule, &place))
		return false;
	if (rule->cfa_off < 0 || rule->cfa_off % WORD || rule->cfa_off / WORD > ABI_RULE_CFA_WORDS)
		return false;
	if (rule->fp_off > 0 || rule->fp_off % WORD || -rule->fp_off / WORD > ABI_RULE_FP_WORDS)
		return false;
	*ret_bits = rule->cfa | (uint32_t)rule->fp << ABI_RULE_FP_SHIFT |
		    (uint32_t)rule->ra << ABI_RULE_RA_SHIFT |
		    (uint32_t)rule->extra << ABI_RULE_EXTRA_SHIFT |
		    place << ABI_RULE_RA_PLACE_SHIFT |
		    (uint32_t)(-rule->fp_off / WORD) << ABI_RULE_FP_WORDS_SHIFT |
		    (uint32_t)(rule->cfa_off / WORD) << ABI_RULE_CFA_WORDS_SHIFT;
	return true;
}

struct abi_unwind_rule unwind_rule_of_bits(uint32_t bits)
{
	struct abi_unwind_rule rule = {
		.cfa = bits & ABI_RULE_CFA,
		.fp = bits >> ABI_RULE_FP_SHIFT & ABI_RULE_FP,
		.ra = bits >> ABI_RULE_RA_SHIFT & ABI_RULE_RA,
		.extra = bits >> ABI_RULE_EXTRA_SHIFT & ABI_RULE_EXTRA,
		.cfa_off = (int)(bits >> ABI_RULE_CFA_WORDS_SHIFT) * WORD,
		.fp_off =
			(short)((int)(bits >> ABI_RULE_FP_WORDS_SHIFT & ABI_RULE_FP_WORDS) * -WORD),
	};

	switch (bits >> ABI_RULE_RA_PLACE_SHIFT & ABI_RULE_RA_PLACE) {
	case ABI_RULE_RA_BELOW_CFA:
		rule.ra_off = -WORD;
		break;
	case ABI_RULE_RA_ABOVE_FP:
		rule.ra_off = (short)(rule.fp_off + WORD);
		break;
	default:
		break;
	}
	return rule;
}

/* The most significant fields come first. Offsets are inverted: a frame grows downwards. */
uint64_t unwind_rule_kind(const struct abi_unwind_rule *rule)
{
	return (uint64_t)rule->cfa << 56 | (uint64_t)rule->fp << 48 | (uint64_t)rule->ra << 40 |
	       (uint64_t)rule->extra << 32 | (uint64_t)(uint16_t)~rule->ra_off << 16 |
	       (uint16_t)~rule->fp_off;
}
