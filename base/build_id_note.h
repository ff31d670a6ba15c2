/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Finds the GNU build ID in the notes of an ELF file (ELF gABI, "Note Section"). */
#include <stddef.h>

#include "base/module_id.h"

/*
 * Returns -ENOENT if there is no build ID, -EBADMSG if the notes are malformed or the ID is empty,
 * and -EOPNOTSUPP if it is longer than BUILD_ID_MAX_BYTES.
 */
int build_id_from_notes(const void *notes, size_t size, struct build_id *ret_id);
