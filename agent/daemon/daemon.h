/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `fathom agent`: consecutive windows, each group's profile in the local store, HTTP, budgets,
 * reload. All of it runs on the loop's thread: the rings buffer samples while a window is written.
 */
#include "agent/settings/config.h"

/* Runs until SIGTERM or SIGINT; returns the exit status. Takes ownership of CONFIG, which a reload
 * replaces by parsing ARGV again. */
int daemon_run(struct config *config, int argc, char **argv);
/*
 * Whether an agent would start with CONFIG, as far as its settings are concerned. Returns -EINVAL,
 * and in *RET_MESSAGE, the caller's to free, what is wrong with which setting; or -ENOMEM.
 */
int daemon_check(const struct config *config, char **ret_message);
