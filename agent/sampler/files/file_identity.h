/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reads the identity of an open file (base/module_id.h): the inode's numbers, the build ID and the
 * hash of both ends. All that is read of a mapped file is read here, by the file helper if there is
 * one; then the reader is the helper's own.
 */
#include "base/build_id_reader.h"
#include "base/module_id.h"

/*
 * Returns -ESTALE if the file was written to meanwhile, or what the reader returns for a transient
 * failure. A file without a build ID, or with one that cannot be read, has none in *RET_ID.
 */
int file_identity_read(const struct build_id_reader *reader,
	const struct build_id_question *question, struct module_id *ret_id);
