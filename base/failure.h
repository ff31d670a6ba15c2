/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Tells transient failures from final ones. A transient failure must not be cached as a property of
 * the file or process: the same request may succeed a second later. Callers retry with growing
 * pauses.
 */
#include <stdbool.h>
#include <stdint.h>

/*
 * Whether ERR (a negative errno) may pass: descriptors, processes, memory or disk space ran out, a
 * call was interrupted, a device did not answer. All other errors are final for that request.
 */
bool failure_is_transient(int err);
/* Whether we are out of file descriptors or memory, so that other work that needs them fails too.
 */
bool failure_is_shortage(int err);
/*
 * How long to wait after TRIES failures in a row (at least 1): FIRST_NS after the first, four times
 * as long after each further one, at most LONGEST_NS.
 */
uint64_t failure_pause_ns(unsigned int tries, uint64_t first_ns, uint64_t longest_ns);
