/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where the kernel's modules lie, from /proc/modules: `NAME SIZE REFERENCES USERS STATE 0xADDRESS`.
 * The address is that of the module's code. Private to kallsyms.
 */
#include <stddef.h>

struct ksym_module;

/* Sets the place of those of MODULES that FD lists; skips malformed lines. */
int ksym_modules_read(int fd, struct ksym_module *modules, size_t count);
