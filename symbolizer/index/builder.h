/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Builds one module's index from its file: the sandboxed child's whole work. Reads every source
 * there is, best first (pclntab for Go code, DWARF, symbols), and writes what they gave.
 */
struct builder_result {
	int error; /* 0, -EBADMSG no readable ELF file, -E2BIG, -ENOMEM, -EIO … */
	unsigned int broken_units; /* DWARF units given up */
};

/* ELF_FD is read, OUTPUT_FD (empty) written. Returns result.error. */
int builder_run(int elf_fd, int output_fd, struct builder_result *ret_result);
