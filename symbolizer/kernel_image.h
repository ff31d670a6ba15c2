/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Build IDs of the running kernel and its modules, from sysfs. The notes are parsed in the
 * privileged process because the kernel itself provides them, from images loaded with
 * CAP_SYS_MODULE: whoever can load code into the kernel gains nothing by attacking their parser.
 * They are read through base/cursor.h nevertheless.
 */
#include "base/module_id.h"

/* Reads /sys/kernel/notes. Returns -ENOENT if there is no build ID. */
int kernel_build_id(struct build_id *ret_id);
/* Reads /sys/module/NAME/notes/.note.gnu.build-id. NAME is checked: no slash, no dots. */
int kernel_module_build_id(const char *name, struct build_id *ret_id);
