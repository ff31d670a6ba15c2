/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What did not answer lately, and how long to wait for what is asked next. A key is whatever can
 * hang by itself: a device, the memory of a process, a folder as a container sees it.
 *
 * What did not answer is left alone for a while, unless its answer still arrives. All waits
 * together are limited, too: a hundred mounts can hang one after the other, and each is new. Once a
 * twentieth of the time was lost to waits, they are short, which most that answer at all do not
 * notice; once a quarter was, only keys that have answered before are asked.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HANGS_SUSPECTS = 64, HANGS_ANSWERED = 256 };

struct suspect {
	uint64_t key; /* 0 = free */
	uint64_t until_ns;
	unsigned int times; /* in a row */
	bool said; /* the log has it */
};

struct hangs {
	struct suspect suspects[HANGS_SUSPECTS];
	size_t next_suspect; /* the oldest */
	uint64_t answered[HANGS_ANSWERED]; /* by the low bits of the key */
	uint64_t long_ns, short_ns; /* what may be spent on long waits, and on any */
	uint64_t filled_ns;
};

/* NOW_NS, here and below: CLOCK_MONOTONIC. */
void hangs_init(struct hangs *h, uint64_t now_ns);
/* How long to wait for KEY; 0 = it is not to be asked now. */
uint64_t hangs_patience_ns(struct hangs *h, uint64_t key, uint64_t now_ns);
/* How long all waits together may still last; longer waits for answers take of it, too. */
uint64_t hangs_room_ns(const struct hangs *h);
/* KEY answered, after WAITED_NS of waiting for it; even if too late for who asked. */
void hangs_answered(struct hangs *h, uint64_t key, uint64_t waited_ns);
/* Whether the log is to have that KEY hangs: once, as long as it does not answer. */
bool hangs_say(struct hangs *h, uint64_t key);
/* KEY did not answer for WAITED_NS. Returns how often in a row that was so. */
unsigned int hangs_timed_out(struct hangs *h, uint64_t key, uint64_t waited_ns, uint64_t now_ns);
