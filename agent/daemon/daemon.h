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
