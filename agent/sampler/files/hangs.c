/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/files/hangs.h"

#include "base/cleanup.h"
#include "base/failure.h"

static const uint64_t PATIENCE_NS = UINT64_C(200000000);
/* Of keys that have answered before, while the allowance is spent. */
static const uint64_t SHORT_PATIENCE_NS = UINT64_C(20000000);
/* All waits together: a second at once, and then a twentieth of the time. */
static const uint64_t ALLOWANCE_NS = UINT64_C(1000000000);
enum { ALLOWANCE_SHARE = 20 };
/* Shorter ones are everyday work. */
static const uint64_t LONG_WAIT_NS = UINT64_C(5000000);
/* Before a suspect is asked again. */
static const uint64_t FIRST_PAUSE_NS = UINT64_C(5000000000);
static const uint64_t LONGEST_PAUSE_NS = UINT64_C(300000000000);

void hangs_init(struct hangs *h, uint64_t now_ns)
{
	*h = (struct hangs){ .allowance_ns = ALLOWANCE_NS, .filled_ns = now_ns };
}

static struct suspect *hangs_find(struct hangs *h, uint64_t key)
{
	for (size_t i = 0; i < HANGS_SUSPECTS; i++)
		if (h->suspects[i].key == key)
			return &h->suspects[i];
	return NULL;
}

static void hangs_fill(struct hangs *h, uint64_t now_ns)
{
	uint64_t gained_ns = (now_ns - h->filled_ns) / ALLOWANCE_SHARE;

	h->allowance_ns = MIN(h->allowance_ns + gained_ns, ALLOWANCE_NS);
	h->filled_ns = now_ns;
}

static void hangs_spend(struct hangs *h, uint64_t waited_ns)
{
	if (waited_ns >= LONG_WAIT_NS)
		h->allowance_ns -= MIN(h->allowance_ns, waited_ns);
}

uint64_t hangs_patience_ns(struct hangs *h, uint64_t key, uint64_t now_ns)
{
	const struct suspect *s = hangs_find(h, key);

	if (s && now_ns < s->until_ns)
		return 0;
	hangs_fill(h, now_ns);
	if (h->allowance_ns >= PATIENCE_NS)
		return PATIENCE_NS;
	return h->answered[key % HANGS_ANSWERED] == key ? SHORT_PATIENCE_NS : 0;
}

void hangs_answered(struct hangs *h, uint64_t key, uint64_t waited_ns)
{
	struct suspect *s = hangs_find(h, key);

	if (s)
		*s = (struct suspect){ .key = 0 };
	h->answered[key % HANGS_ANSWERED] = key;
	hangs_spend(h, waited_ns);
}

unsigned int hangs_timed_out(struct hangs *h, uint64_t key, uint64_t waited_ns, uint64_t now_ns)
{
	struct suspect *s = hangs_find(h, key);

	if (!s) {
		s = &h->suspects[h->next_suspect++ % HANGS_SUSPECTS];
		*s = (struct suspect){ .key = key };
	}
	s->times++;
	s->until_ns = now_ns + failure_pause_ns(s->times, FIRST_PAUSE_NS, LONGEST_PAUSE_NS);
	if (h->answered[key % HANGS_ANSWERED] == key)
		h->answered[key % HANGS_ANSWERED] = 0;
	hangs_spend(h, waited_ns);
	return s->times;
}
