/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The GNU build ID among the notes of an ELF file (ELF gABI, "Note Section"). */
#include <stddef.h>

#include "base/module_id.h"

/* -ENOENT: none is there. -EBADMSG: the notes make no sense. -EOPNOTSUPP: it is too long. */
int build_id_from_notes(const void *notes, size_t size, struct build_id *ret_id);
