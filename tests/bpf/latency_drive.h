/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Runs a command while functions are measured at given sites, and prints what was measured. For
 * run_latency and the benchmark, which find the sites with objdump.
 */

/*
 * ARGV: `[--events | --paths] [--by=fiber|process] [--limit=N] FILE SITES COMMAND [ARGUMENT]…`.
 * --events: as before Linux 6.6; --paths: as before 5.15. FILE is probed at what the file SITES
 * lists, a word and numbers on each line. Returns an exit status.
 *
 * - go TLS_OFFSET G_M M_CURG G_GOID: of the functions that follow
 * - function NAME IS_FIBER STACK_CHECK RESTART_OFFSET
 * - entry FILE_OFFSET, return FILE_OFFSET: of the last function
 */
int latency_drive(int argc, char **argv);
