/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The build IDs of the running kernel and its modules, from sysfs. Their notes are parsed in the
 * privileged process: the kernel itself puts them there, from images that were loaded with
 * CAP_SYS_MODULE, and whoever may load code into the kernel gains nothing by deceiving its parser.
 * It reads through base/cursor.h all the same.
 */
#include "base/module_id.h"

/* From /sys/kernel/notes. -ENOENT where there is none. */
int kernel_build_id(struct build_id *ret_id);
/* From /sys/module/NAME/notes/.note.gnu.build-id; NAME is checked (no slash, no dots). */
int kernel_module_build_id(const char *name, struct build_id *ret_id);
