/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Telling systemd how we are (sd_notify(3)'s protocol: a datagram to $NOTIFY_SOCKET). */
#include <stdint.h>

/* Sends STATE ("READY=1"). Without a socket it does nothing. */
void notify_send(const char *state);
/* The settings are being read again; READY=1 ends it. */
void notify_reloading(void);
/* How often the watchdog wants to hear from us, in ns; 0 = it does not. */
uint64_t notify_watchdog_ns(void);
