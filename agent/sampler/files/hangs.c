/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/files/hangs.h"

#include "base/cleanup.h"
#include "base/failure.h"

static const uint64_t PATIENCE_NS = UINT64_C(200000000);
static const uint64_t SHORT_PATIENCE_NS = UINT64_C(20000000);
/* All waits together: so much at once, and then a share of the time. */
static const uint64_t ALLOWANCE_NS = UINT64_C(600000000);
enum { LONG_SHARE = 20, SHORT_SHARE = 4 };
/* Shorter waits for answers are everyday work on a busy machine. */
static const uint64_t LONG_WAIT_NS = UINT64_C(50000000);
/* Before a suspect is asked again. */
static const uint64_t FIRST_PAUSE_NS = UINT64_C(5000000000);
static const uint64_t LONGEST_PAUSE_NS = UINT64_C(15000000000);

void hangs_init(struct hangs *h, uint64_t now_ns)
{
	*h = (struct hangs){
		.long_ns = ALLOWANCE_NS, .short_ns = ALLOWANCE_NS, .filled_ns = now_ns
	};
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
	uint64_t passed_ns = now_ns - h->filled_ns;

	h->long_ns = MIN(h->long_ns + passed_ns / LONG_SHARE, ALLOWANCE_NS);
	h->short_ns = MIN(h->short_ns + passed_ns / SHORT_SHARE, ALLOWANCE_NS);
	h->filled_ns = now_ns;
}

static void hangs_spend(struct hangs *h, uint64_t waited_ns)
{
	h->long_ns -= MIN(h->long_ns, waited_ns);
	h->short_ns -= MIN(h->short_ns, waited_ns);
}

uint64_t hangs_patience_ns(struct hangs *h, uint64_t key, uint64_t now_ns)
{
	const struct suspect *s = hangs_find(h, key);

	if (s && now_ns < s->until_ns)
		return 0;
	hangs_fill(h, now_ns);
	if (h->long_ns >= PATIENCE_NS)
		return PATIENCE_NS;
	if (h->short_ns >= SHORT_PATIENCE_NS)
		return SHORT_PATIENCE_NS;
	return h->answered[key % HANGS_ANSWERED] == key ? SHORT_PATIENCE_NS : 0;
}

uint64_t hangs_room_ns(const struct hangs *h)
{
	return h->short_ns;
}

void hangs_answered(struct hangs *h, uint64_t key, uint64_t waited_ns)
{
	struct suspect *s = hangs_find(h, key);

	if (s)
		*s = (struct suspect){ .key = 0 };
	h->answered[key % HANGS_ANSWERED] = key;
	if (waited_ns >= LONG_WAIT_NS)
		hangs_spend(h, waited_ns);
}

bool hangs_say(struct hangs *h, uint64_t key)
{
	struct suspect *s = hangs_find(h, key);

	if (!s || s->said)
		return false;
	s->said = true;
	return true;
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
