/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why goroutines wait: the texts of runtime.waitReasonStrings by their numbers, the constants
 * waitReason... of each version (1.26 has the texts of 1.25 in another order).
 */
#include <stddef.h>

#include "agent/sampler/runtimes/go/waits.h"
#include "base/cleanup.h"
#include "bpf/abi/fiber_facts.h"

/* Go 1.16 to 1.19. */
static const char *const waits_16[] = { NULL, "GC assist marking", "IO wait",
	"chan receive (nil chan)", "chan send (nil chan)", "dumping heap", "garbage collection",
	"garbage collection scan", "panicwait", "select", "select (no cases)", "GC assist wait",
	"GC sweep wait", "GC scavenge wait", "chan receive", "chan send", "finalizer wait",
	"force gc (idle)", "semacquire", "sleep", "sync.Cond.Wait", "timer goroutine (idle)",
	"trace reader (blocked)", "wait for GC cycle", "GC worker (idle)", "preempted",
	"debug call" };
/* Go 1.20 and 1.21. */
static const char *const waits_20[] = { NULL, "GC assist marking", "IO wait",
	"chan receive (nil chan)", "chan send (nil chan)", "dumping heap", "garbage collection",
	"garbage collection scan", "panicwait", "select", "select (no cases)", "GC assist wait",
	"GC sweep wait", "GC scavenge wait", "chan receive", "chan send", "finalizer wait",
	"force gc (idle)", "semacquire", "sleep", "sync.Cond.Wait", "sync.Mutex.Lock",
	"sync.RWMutex.RLock", "sync.RWMutex.Lock", "trace reader (blocked)", "wait for GC cycle",
	"GC worker (idle)", "GC worker (active)", "preempted", "debug call", "GC mark termination",
	"stopping the world" };
/* Go 1.22 and 1.23 (1.22 lacks the last one). */
static const char *const waits_22[] = { NULL, "GC assist marking", "IO wait",
	"chan receive (nil chan)", "chan send (nil chan)", "dumping heap", "garbage collection",
	"garbage collection scan", "panicwait", "select", "select (no cases)", "GC assist wait",
	"GC sweep wait", "GC scavenge wait", "chan receive", "chan send", "finalizer wait",
	"force gc (idle)", "semacquire", "sleep", "sync.Cond.Wait", "sync.Mutex.Lock",
	"sync.RWMutex.RLock", "sync.RWMutex.Lock", "trace reader (blocked)", "wait for GC cycle",
	"GC worker (idle)", "GC worker (active)", "preempted", "debug call", "GC mark termination",
	"stopping the world", "flushing proc caches", "trace goroutine status", "trace proc status",
	"page trace flush", "coroutine", "GC weak to strong wait" };
/* Go 1.24. */
static const char *const waits_24[] = { NULL, "GC assist marking", "IO wait",
	"chan receive (nil chan)", "chan send (nil chan)", "dumping heap", "garbage collection",
	"garbage collection scan", "panicwait", "select", "select (no cases)", "GC assist wait",
	"GC sweep wait", "GC scavenge wait", "chan receive", "chan send", "finalizer wait",
	"force gc (idle)", "semacquire", "sleep", "sync.Cond.Wait", "sync.Mutex.Lock",
	"sync.RWMutex.RLock", "sync.RWMutex.Lock", "sync.WaitGroup.Wait", "trace reader (blocked)",
	"wait for GC cycle", "GC worker (idle)", "GC worker (active)", "preempted", "debug call",
	"GC mark termination", "stopping the world", "flushing proc caches",
	"trace goroutine status", "trace proc status", "page trace flush", "coroutine",
	"GC weak to strong wait", "synctest.Run", "synctest.Wait", "chan receive (synctest)",
	"chan send (synctest)", "select (synctest)" };
/* Go 1.25. */
static const char *const waits_25[] = { NULL, "GC assist marking", "IO wait",
	"chan receive (nil chan)", "chan send (nil chan)", "dumping heap", "garbage collection",
	"garbage collection scan", "panicwait", "select", "select (no cases)", "GC assist wait",
	"GC sweep wait", "GC scavenge wait", "chan receive", "chan send", "finalizer wait",
	"force gc (idle)", "GOMAXPROCS updater (idle)", "semacquire", "sleep", "sync.Cond.Wait",
	"sync.Mutex.Lock", "sync.RWMutex.RLock", "sync.RWMutex.Lock", "sync.WaitGroup.Wait",
	"trace reader (blocked)", "wait for GC cycle", "GC worker (idle)", "GC worker (active)",
	"preempted", "debug call", "GC mark termination", "stopping the world",
	"flushing proc caches", "trace goroutine status", "trace proc status", "page trace flush",
	"coroutine", "GC weak to strong wait", "synctest.Run", "synctest.Wait",
	"chan receive (durable)", "chan send (durable)", "select (durable)",
	"sync.WaitGroup.Wait (durable)", "cleanup wait" };
/* Go 1.26 and 1.27. */
static const char *const waits_26[] = { NULL, "GC assist marking", "IO wait", "dumping heap",
	"garbage collection", "garbage collection scan", "panicwait", "GC assist wait",
	"GC sweep wait", "GC scavenge wait", "finalizer wait", "force gc (idle)",
	"GOMAXPROCS updater (idle)", "semacquire", "sleep", "chan receive (nil chan)",
	"chan send (nil chan)", "select (no cases)", "select", "chan receive", "chan send",
	"sync.Cond.Wait", "sync.Mutex.Lock", "sync.RWMutex.RLock", "sync.RWMutex.Lock",
	"sync.WaitGroup.Wait", "trace reader (blocked)", "wait for GC cycle", "GC worker (idle)",
	"GC worker (active)", "preempted", "debug call", "GC mark termination",
	"stopping the world", "flushing proc caches", "trace goroutine status", "trace proc status",
	"page trace flush", "coroutine", "GC weak to strong wait", "synctest.Run", "synctest.Wait",
	"chan receive (durable)", "chan send (durable)", "select (durable)",
	"sync.WaitGroup.Wait (durable)", "cleanup wait" };

static const struct {
	uint32_t first_minor; /* Go 1.N, up to the next row's */
	const char *const *texts;
	size_t count;
} waits[] = {
	{ 16, waits_16, ARRAY_SIZE(waits_16) },
	{ 20, waits_20, ARRAY_SIZE(waits_20) },
	{ 22, waits_22, ARRAY_SIZE(waits_22) },
	{ 24, waits_24, ARRAY_SIZE(waits_24) },
	{ 25, waits_25, ARRAY_SIZE(waits_25) },
	{ 26, waits_26, ARRAY_SIZE(waits_26) },
};

const char *go_wait_text(uint32_t wait)
{
	uint32_t minor = wait >> ABI_FIBER_WAIT_REASON_BITS;
	uint32_t reason = wait & ((1 << ABI_FIBER_WAIT_REASON_BITS) - 1);

	for (size_t i = ARRAY_SIZE(waits); i-- > 0;)
		if (minor >= waits[i].first_minor)
			return reason < waits[i].count ? waits[i].texts[reason] : NULL;
	return NULL;
}
