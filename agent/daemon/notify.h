/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Notifications to systemd (sd_notify(3): a datagram to $NOTIFY_SOCKET). */
#include <stdint.h>

/* Sends STATE (e.g. "READY=1"). Does nothing without a socket. */
void notify_send(const char *state);
/* Announces a reload; READY=1 ends it. */
void notify_reloading(void);
/* The watchdog's timeout in ns; 0 = no watchdog. */
uint64_t notify_watchdog_ns(void);
