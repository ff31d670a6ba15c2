/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why goroutines wait: the texts of runtime.waitReasonStrings. The number of a reason is its place
 * among those of its version, from 1 on: the constants waitReason... of Go's runtime2.go. Up to
 * 1.25 new ones came between the others; 1.26 has another order.
 */
#include <stddef.h>

#include "agent/sampler/runtimes/go/waits.h"
#include "base/cleanup.h"
#include "bpf/abi/fiber_facts.h"

enum { LATEST = UINT8_MAX };

static const struct {
	const char *text;
	uint8_t first_minor, last_minor; /* Go 1.N */
} waits[] = {
	{ "GC assist marking", 16, 25 },
	{ "IO wait", 16, 25 },
	{ "chan receive (nil chan)", 16, 25 },
	{ "chan send (nil chan)", 16, 25 },
	{ "dumping heap", 16, 25 },
	{ "garbage collection", 16, 25 },
	{ "garbage collection scan", 16, 25 },
	{ "panicwait", 16, 25 },
	{ "select", 16, 25 },
	{ "select (no cases)", 16, 25 },
	{ "GC assist wait", 16, 25 },
	{ "GC sweep wait", 16, 25 },
	{ "GC scavenge wait", 16, 25 },
	{ "chan receive", 16, 25 },
	{ "chan send", 16, 25 },
	{ "finalizer wait", 16, 25 },
	{ "force gc (idle)", 16, 25 },
	{ "GOMAXPROCS updater (idle)", 25, 25 },
	{ "semacquire", 16, 25 },
	{ "sleep", 16, 25 },
	{ "sync.Cond.Wait", 16, 25 },
	{ "sync.Mutex.Lock", 20, 25 },
	{ "sync.RWMutex.RLock", 20, 25 },
	{ "sync.RWMutex.Lock", 20, 25 },
	{ "sync.WaitGroup.Wait", 24, 25 },
	{ "timer goroutine (idle)", 16, 19 },
	{ "trace reader (blocked)", 16, 25 },
	{ "wait for GC cycle", 16, 25 },
	{ "GC worker (idle)", 16, 25 },
	{ "GC worker (active)", 20, 25 },
	{ "preempted", 16, 25 },
	{ "debug call", 16, 25 },
	{ "GC mark termination", 20, 25 },
	{ "stopping the world", 20, 25 },
	{ "flushing proc caches", 22, 25 },
	{ "trace goroutine status", 22, 25 },
	{ "trace proc status", 22, 25 },
	{ "page trace flush", 22, 25 },
	{ "coroutine", 22, 25 },
	{ "GC weak to strong wait", 22, 25 },
	{ "synctest.Run", 24, 25 },
	{ "synctest.Wait", 24, 25 },
	{ "chan receive (durable)", 25, 25 },
	{ "chan send (durable)", 25, 25 },
	{ "select (durable)", 25, 25 },
	{ "sync.WaitGroup.Wait (durable)", 25, 25 },
	{ "cleanup wait", 25, 25 },
	{ "chan receive (synctest)", 24, 24 },
	{ "chan send (synctest)", 24, 24 },
	{ "select (synctest)", 24, 24 },
	/* In the order of 1.26. */
	{ "GC assist marking", 26, LATEST },
	{ "IO wait", 26, LATEST },
	{ "dumping heap", 26, LATEST },
	{ "garbage collection", 26, LATEST },
	{ "garbage collection scan", 26, LATEST },
	{ "panicwait", 26, LATEST },
	{ "GC assist wait", 26, LATEST },
	{ "GC sweep wait", 26, LATEST },
	{ "GC scavenge wait", 26, LATEST },
	{ "finalizer wait", 26, LATEST },
	{ "force gc (idle)", 26, LATEST },
	{ "GOMAXPROCS updater (idle)", 26, LATEST },
	{ "semacquire", 26, LATEST },
	{ "sleep", 26, LATEST },
	{ "chan receive (nil chan)", 26, LATEST },
	{ "chan send (nil chan)", 26, LATEST },
	{ "select (no cases)", 26, LATEST },
	{ "select", 26, LATEST },
	{ "chan receive", 26, LATEST },
	{ "chan send", 26, LATEST },
	{ "sync.Cond.Wait", 26, LATEST },
	{ "sync.Mutex.Lock", 26, LATEST },
	{ "sync.RWMutex.RLock", 26, LATEST },
	{ "sync.RWMutex.Lock", 26, LATEST },
	{ "sync.WaitGroup.Wait", 26, LATEST },
	{ "trace reader (blocked)", 26, LATEST },
	{ "wait for GC cycle", 26, LATEST },
	{ "GC worker (idle)", 26, LATEST },
	{ "GC worker (active)", 26, LATEST },
	{ "preempted", 26, LATEST },
	{ "debug call", 26, LATEST },
	{ "GC mark termination", 26, LATEST },
	{ "stopping the world", 26, LATEST },
	{ "flushing proc caches", 26, LATEST },
	{ "trace goroutine status", 26, LATEST },
	{ "trace proc status", 26, LATEST },
	{ "page trace flush", 26, LATEST },
	{ "coroutine", 26, LATEST },
	{ "GC weak to strong wait", 26, LATEST },
	{ "synctest.Run", 26, LATEST },
	{ "synctest.Wait", 26, LATEST },
	{ "chan receive (durable)", 26, LATEST },
	{ "chan send (durable)", 26, LATEST },
	{ "select (durable)", 26, LATEST },
	{ "sync.WaitGroup.Wait (durable)", 26, LATEST },
	{ "cleanup wait", 26, LATEST },
};

const char *go_wait_text(uint32_t wait)
{
	uint32_t minor = wait >> ABI_FIBER_WAIT_REASON_BITS;
	uint32_t reason = wait & ((1 << ABI_FIBER_WAIT_REASON_BITS) - 1);

	for (size_t i = 0; i < ARRAY_SIZE(waits) && reason; i++) {
		if (minor < waits[i].first_minor || minor > waits[i].last_minor)
			continue;
		if (!--reason)
			return waits[i].text;
	}
	return NULL;
}
