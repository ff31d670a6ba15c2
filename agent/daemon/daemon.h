/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `fathom agent`: windows one after the other, each group's profile into the local store, the HTTP
 * side, budgets, reload. Everything on the loop's thread: the rings hold what is sampled while a
 * window is being written.
 */
#include "agent/settings/config.h"

/* Runs until SIGTERM or SIGINT. CONFIG is taken over (and replaced at a reload, which parses ARGV
 * again). Returns the exit status. */
int daemon_run(struct config *config, int argc, char **argv);
