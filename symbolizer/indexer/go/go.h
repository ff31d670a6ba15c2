/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What this room reads of a Go program: functions, inline trees and lines from its pclntab, and how
 * to read goroutine ids. The input is hostile: -EBADMSG costs the caller this source (or a part of
 * it), nothing more. -ENOMEM and -E2BIG end the build.
 */
#include <stdint.h>

#include "symbolizer/indexer/elf/elf_image.h"
#include "symbolizer/indexer/source.h"
#include "symbolizer/indexer/source_range.h"
#include "symbolizer/indexer/writer/writer.h"

/* Rows of the builder's table: names from the pclntab; goroutine ids and the Go build ID. */
int go_read_names(struct source_build *b);
int go_read_facts(struct source_build *b);

/*
 * .gopclntab with its inline tree, Go 1.16 to 1.27 (section found or searched for). *RET_TEXT is
 * the stretch it answers for. -ENOENT: not a Go program. -EOPNOTSUPP: a pclntab of another
 * version; nothing was written.
 */
int gopclntab_read(struct elf_image *image, struct index_writer *w, struct source_range *ret_text);

/*
 * Go version and goroutine-id offsets; `version` 0 when not a Go program, GO_VERSION_UNKNOWN for
 * one whose version does not say which release it is.
 */
enum { GO_VERSION_UNKNOWN = UINT32_MAX };
int go_facts_read(struct elf_image *image, struct index_go *ret_go);
/* The text of .note.go.buildid, or an empty cursor. */
struct cursor go_build_id(struct elf_image *image);
