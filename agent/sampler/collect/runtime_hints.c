/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/collect/runtime_hints.h"

void runtime_hints_add(struct runtime_hints *h, uint32_t tgid)
{
	const uint32_t bit = tgid % ABI_RUNTIME_HINTS;

	h->counts[bit]++;
	__atomic_fetch_or(&h->words[bit / 64], UINT64_C(1) << bit % 64, __ATOMIC_RELEASE);
}

void runtime_hints_remove(struct runtime_hints *h, uint32_t tgid)
{
	const uint32_t bit = tgid % ABI_RUNTIME_HINTS;

	if (--h->counts[bit] == 0)
		__atomic_fetch_and(
			&h->words[bit / 64], ~(UINT64_C(1) << bit % 64), __ATOMIC_RELEASE);
}
