/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An ELF file without what it runs, as `objcopy --only-keep-debug` makes it: headers, symbol and
 * string tables, notes, DWARF and Go's line tables stay, all other sections become SHT_NOBITS.
 * Sections keep their numbers and addresses, loadable segments their place in the original file,
 * which is what readers compute addresses by. Runs only in the sandbox; 64-bit little-endian.
 */
#include "symbolizer/sandbox/job.h"

/*
 * ELF_FD is read with bounded reads, OUTPUT_FD (empty) written. -ENODATA: nothing in there names
 * anything; -EBADMSG, -EOPNOTSUPP: no such file; -E2BIG: over KEEP_DEBUG_MAX_BYTES, or too many
 * headers. Returns result.error.
 */
int keep_debug_run(int elf_fd, int output_fd, struct sandbox_result *ret_result);
