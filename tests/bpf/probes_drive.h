/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A sampler that obeys lines of standard input: probes are set, windows are sealed and printed. For
 * tests/bpf/run_probes.
 */

/* CACHE: the directory of the indexes. Returns the exit status. */
int probes_drive(const char *cache);
