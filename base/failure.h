/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which failures are final and which pass. A failure that passes must not be remembered as if it
 * were a property of the file or process that was asked for: the same request may succeed a second
 * later. Whoever meets one tries again, after a pause that grows.
 */
#include <stdbool.h>
#include <stdint.h>

/*
 * Whether ERR (a negative errno) is about the moment: descriptors, processes, memory or disk space
 * ran out, a call was interrupted, a device did not answer. All other errors are about what was
 * asked for.
 */
bool failure_is_transient(int err);
/* Whether it is we who have no descriptors or memory: nothing that needs them can be done now. */
bool failure_is_shortage(int err);
/*
 * How long to wait after the TRIES-th failure in a row (from 1): FIRST_NS, then four times as long
 * each time, LONGEST_NS at most.
 */
uint64_t failure_pause_ns(unsigned int tries, uint64_t first_ns, uint64_t longest_ns);
