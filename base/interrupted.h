/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * For work that takes long between two turns of the event loop, which reads signals from a
 * descriptor: they are blocked, and stay pending until then.
 */
#include <stdbool.h>

/* Whether a signal that asks to end (SIGINT, SIGTERM, SIGHUP) is pending. */
bool interrupted(void);
/* As above, but not SIGHUP, at which the agent only reloads its settings. */
bool interrupted_to_end(void);
