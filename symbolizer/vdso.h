/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The vDSO, a small ELF file that the kernel maps into each process. Ours is the one of every
 * 64-bit process: its bytes are copied from our own memory (getauxval(AT_SYSINFO_EHDR)) into a
 * sealed memfd and indexed in the sandbox like any other module. Its headers are parsed in the
 * privileged process, for size and build ID: they are the kernel's own bytes, mapped at our exec,
 * and no other process can write to our copy.
 */
#include "base/module_id.h"

/*
 * Returns a memfd with the image and its identity; an image without a build ID gets one made from
 * its bytes.
 */
int vdso_open(int *ret_fd, struct module_id *ret_id);
