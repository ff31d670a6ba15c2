/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Reads a Go program: functions, inline trees and lines from its pclntab, and how to read goroutine
 * ids. The input is untrusted: after -EBADMSG the build goes on without this source (or part of
 * it). -ENOMEM and -E2BIG end the build.
 */
#include <stdint.h>

#include "symbolizer/index/runtime_go.h"
#include "symbolizer/indexer/elf/elf_image.h"
#include "symbolizer/indexer/source_range.h"
#include "symbolizer/indexer/writer/writer.h"

/*
 * Reads the pclntab with its inline trees, Go 1.16 to 1.27, from its section or by searching for
 * it. *RET_TEXT is the address range that it describes. Returns -ENOENT if this is not a Go
 * program, -EOPNOTSUPP if the pclntab has another version; nothing was written then.
 */
int gopclntab_read(struct elf_image *image, struct index_writer *w, struct source_range *ret_text);

/*
 * Gets the Go version and the offsets for reading goroutine ids. `version` is 0 if this is not a Go
 * program, GO_VERSION_UNKNOWN if its version does not name a release.
 */
enum { GO_VERSION_UNKNOWN = UINT32_MAX };
int go_facts_read(struct elf_image *image, struct index_go *ret_go);
void go_write_facts(struct index_writer *w, const struct index_go *go);
/* Returns the text of .note.go.buildid, or an empty cursor. */
struct cursor go_build_id(struct elf_image *image);
