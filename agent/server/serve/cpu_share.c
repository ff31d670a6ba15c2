/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/server/serve/cpu_share.h"

#include <assert.h>

#include "base/cleanup.h"

enum { PERMILLE = 1000 };

/* Nothing is owed for longer: a cost that was measured wrongly must not shut clients out. */
static const uint64_t MAX_WAIT_NS = UINT64_C(10000000000);

void cpu_share_init(
	struct cpu_share *share, uint64_t share_permille, uint64_t limit_ns, uint64_t now_ns)
{
	assert(share_permille > 0 && share_permille <= PERMILLE);
	*share = (struct cpu_share){ .share_permille = share_permille,
		.limit_ns = limit_ns,
		.left_ns = (int64_t)limit_ns,
		.since_ns = now_ns };
}

static void cpu_share_refill(struct cpu_share *share, uint64_t now_ns)
{
	uint64_t passed_ns = now_ns > share->since_ns ? now_ns - share->since_ns : 0;
	/* From the deepest debt to the limit: more is never needed, and nothing overflows. */
	uint64_t longest_ns = MAX_WAIT_NS + share->limit_ns / share->share_permille * PERMILLE;

	share->left_ns += (int64_t)(MIN(passed_ns, longest_ns) * share->share_permille / PERMILLE);
	share->left_ns = MIN(share->left_ns, (int64_t)share->limit_ns);
	share->since_ns = now_ns;
}

void cpu_share_spend(struct cpu_share *share, uint64_t cost_ns, uint64_t now_ns)
{
	int64_t deepest = -(int64_t)(MAX_WAIT_NS / PERMILLE * share->share_permille);

	cpu_share_refill(share, now_ns);
	share->left_ns -= (int64_t)MIN(cost_ns, MAX_WAIT_NS);
	share->left_ns = MAX(share->left_ns, deepest);
}

uint64_t cpu_share_wait_ns(struct cpu_share *share, uint64_t now_ns)
{
	cpu_share_refill(share, now_ns);
	if (share->left_ns > 0)
		return 0;
	return (uint64_t)(1 - share->left_ns) * PERMILLE / share->share_permille + 1;
}
