/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The GNU build ID of an ELF file, from its program headers and notes alone. */
#include "base/module_id.h"

/*
 * Reads it with bounded reads of the ELF header, the program headers and the note segments.
 * Returns -ENOENT if there is none, -EBADMSG if FD is no ELF file, -E2BIG if it has too many
 * program headers, -EOPNOTSUPP if it is big-endian or the ID is longer than ours.
 */
int build_id_read(int fd, struct build_id *ret_id);
