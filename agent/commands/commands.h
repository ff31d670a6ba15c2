/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The commands. Each takes its own argv (argv[0] is its name) and returns the exit status. */

enum {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
};

int command_agent(int argc, char **argv);
int command_record(int argc, char **argv);
int command_top(int argc, char **argv);
int command_symbolize(int argc, char **argv);
int command_upload(int argc, char **argv);
int command_check(int argc, char **argv);
/* Hidden: the manual page, for `make`. */
int command_manual(int argc, char **argv);
