/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The vDSO, a small ELF file that the kernel maps into each process. Ours is every 64-bit
 * process's: its bytes are copied from our own memory (getauxval(AT_SYSINFO_EHDR)) into a sealed
 * memfd and indexed in the sandbox like any other module. For its size and build ID its headers are
 * parsed in the privileged process: they are the kernel's own bytes, mapped at our exec, and no
 * other process can write to our copy.
 */
#include "base/module_id.h"

/* A memfd with the image; its build ID in *RET_ID (made from the bytes where it has none). */
int vdso_open(int *ret_fd, struct module_id *ret_id);
