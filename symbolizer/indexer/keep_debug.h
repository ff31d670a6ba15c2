/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Copies an ELF file without its code and data, like `objcopy --only-keep-debug`: headers, symbol
 * and string tables, notes, DWARF and Go's line tables stay, all other sections become SHT_NOBITS.
 * Sections keep their numbers and addresses, loadable segments their file offsets, from which
 * readers compute addresses. Runs only in the sandbox; 64-bit little-endian.
 */
#include "symbolizer/sandbox/job.h"

/*
 * Reads ELF_FD with bounded reads and writes OUTPUT_FD, which is empty. Returns result.error:
 * -ENODATA if nothing in the file names code; -EBADMSG or -EOPNOTSUPP if it is no such ELF file;
 * -E2BIG if it exceeds KEEP_DEBUG_MAX_BYTES or has too many headers.
 */
int keep_debug_run(int elf_fd, int output_fd, struct sandbox_result *ret_result);
