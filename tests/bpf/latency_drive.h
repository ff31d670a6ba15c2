/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Runs a command while functions are measured at given sites, and prints what was measured. For
 * run_latency and the benchmark, which find the sites with objdump.
 */

/*
 * ARGV: `[--events] [--by=fiber|process] [--limit=N] FILE SITES COMMAND [ARGUMENT]…`. FILE is
 * probed at what the file SITES lists, a word and numbers on each line: go TLS_OFFSET G_M M_CURG
 * G_GOID      of the functions that follow function NAME IS_FIBER STACK_CHECK RESTART_OFFSET entry
 * FILE_OFFSET                    of the last function return FILE_OFFSET Returns an exit status.
 */
int latency_drive(int argc, char **argv);
