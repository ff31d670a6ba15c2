/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How to read the goroutine that a thread runs: where g is in thread-local storage, and the offsets
 * of a few members of runtime.g and runtime.m. The offsets come from DWARF; for programs without
 * it, from a table measured on the releases of Go 1.16 to 1.27 (from their DWARF, on amd64; no
 * member before these has a size that depends on the architecture). Not supported, since a wrong
 * offset would give a wrong goroutine id: versions without either, releases newer than the table
 * (what the members mean may have changed, as labels did in 1.24), and programs whose DWARF
 * contradicts the table's row of their release.
 */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "symbolizer/indexer/go/go_tls.h"
#include "symbolizer/indexer/go/go_version.h"
#include "symbolizer/indexer/go/go.h"
#include "symbolizer/indexer/dwarf/dwarf.h"

enum labels_kind {
	LABELS_NONE,
	LABELS_MAP,
	LABELS_SLICE, /* from 1.24 on */
};

enum {
	FIRST_MINOR = 16,
	LAST_MINOR = 27,
	FIRST_MINOR_WITH_LABEL_SLICE = 24,
	MAX_MEMBER_OFFSET = UINT16_MAX,
	NOTE_GO_BUILD_ID = 4,
	MAX_NOTES = 64,
};

struct offsets {
	uint16_t g_m, m_curg, g_goid, g_stack_hi, g_sched_bp, g_labels;
	uint16_t g_status, g_gopc, g_startpc, g_parent_goid;
	uint16_t g_waitreason, m_lockedg;
};

static const struct offsets measured[LAST_MINOR - FIRST_MINOR + 1] = {
	/*	  m, curg, goid, stack.hi, sched.bp, labels, status, gopc, startpc, parentGoid,
	 *	  waitreason, lockedg */
	[16 - 16] = { 48, 192, 152, 8, 104, 344, 144, 280, 296, 0, 176, 360 },
	[17 - 16] = { 48, 192, 152, 8, 104, 360, 144, 296, 312, 0, 176, 360 },
	[18 - 16] = { 48, 192, 152, 8, 104, 360, 144, 296, 312, 0, 176, 352 },
	[19 - 16] = { 48, 192, 152, 8, 104, 360, 144, 296, 312, 0, 176, 352 },
	[20 - 16] = { 48, 192, 152, 8, 104, 360, 144, 296, 312, 0, 176, 352 },
	[21 - 16] = { 48, 192, 152, 8, 104, 344, 144, 280, 296, 272, 176, 352 },
	[22 - 16] = { 48, 192, 152, 8, 104, 344, 144, 280, 296, 272, 176, 344 },
	[23 - 16] = { 48, 192, 160, 8, 104, 352, 152, 288, 304, 280, 184, 368 },
	[24 - 16] = { 48, 192, 160, 8, 104, 352, 152, 288, 304, 280, 184, 368 },
	[25 - 16] = { 48, 184, 152, 8, 96, 344, 144, 280, 296, 272, 176, 360 },
	[26 - 16] = { 48, 184, 152, 8, 96, 352, 144, 288, 304, 280, 176, 384 },
	[27 - 16] = { 48, 184, 152, 8, 96, 352, 144, 288, 304, 280, 176, 384 },
};

static const struct offsets *table_offsets(const struct go_version *version)
{
	if (!version->released || version->minor < FIRST_MINOR || version->minor > LAST_MINOR)
		return NULL;
	return &measured[version->minor - FIRST_MINOR];
}

static bool member(
	struct elf_image *image, const char *type, const char *name, uint16_t *ret_offset)
{
	uint64_t offset;

	if (dwarf_member_offset(image, type, name, &offset) || offset > MAX_MEMBER_OFFSET)
		return false;
	*ret_offset = (uint16_t)offset;
	return true;
}

/* As member(), of one that not all versions have: 0 if it is missing. */
static uint16_t optional_member(struct elf_image *image, const char *name)
{
	uint16_t offset;

	return member(image, "runtime.g", name, &offset) ? offset : 0;
}

static bool dwarf_offsets(struct elf_image *image, struct offsets *ret_offsets)
{
	struct offsets o = { 0 };
	uint16_t stack, hi, sched, bp;

	if (!member(image, "runtime.g", "goid", &o.g_goid) ||
		!member(image, "runtime.g", "m", &o.g_m) ||
		!member(image, "runtime.m", "curg", &o.m_curg) ||
		!member(image, "runtime.g", "stack", &stack) ||
		!member(image, "runtime.stack", "hi", &hi) ||
		!member(image, "runtime.g", "sched", &sched) ||
		!member(image, "runtime.gobuf", "bp", &bp) ||
		!member(image, "runtime.g", "atomicstatus", &o.g_status) ||
		!member(image, "runtime.g", "gopc", &o.g_gopc) ||
		!member(image, "runtime.g", "startpc", &o.g_startpc) ||
		!member(image, "runtime.g", "waitreason", &o.g_waitreason) ||
		!member(image, "runtime.m", "lockedg", &o.m_lockedg))
		return false;
	if (stack > MAX_MEMBER_OFFSET - hi || sched > MAX_MEMBER_OFFSET - bp)
		return false;
	o.g_stack_hi = stack + hi;
	o.g_sched_bp = sched + bp;
	o.g_parent_goid = optional_member(image, "parentGoid");
	o.g_labels = optional_member(image, "labels");
	*ret_offsets = o;
	return true;
}

/* Sets *RET_OFFSETS, or returns why that is not possible. */
static enum index_go_refusal find_offsets(
	struct elf_image *image, const struct go_version *version, struct offsets *ret_offsets)
{
	const struct offsets *known = table_offsets(version);
	struct offsets own;
	bool has_own;

	if (version->released && version->minor != GO_VERSION_UNKNOWN &&
		version->minor > LAST_MINOR)
		return INDEX_GO_NEW_VERSION;
	has_own = dwarf_offsets(image, &own);
	if (!has_own && !known)
		return INDEX_GO_UNKNOWN_VERSION;
	if (has_own && known && memcmp(&own, known, sizeof(own)) != 0)
		return INDEX_GO_CONTRADICTION;
	*ret_offsets = has_own ? own : *known;
	return INDEX_GO_SUPPORTED;
}

static enum labels_kind labels_kind(const struct go_version *version, uint32_t offset)
{
	if (!offset || version->minor == GO_VERSION_UNKNOWN)
		return LABELS_NONE;
	return version->minor < FIRST_MINOR_WITH_LABEL_SLICE ? LABELS_MAP : LABELS_SLICE;
}

static void put_offsets(
	const struct go_version *version, const struct offsets *offsets, struct index_go *go)
{
	go->supported = 1;
	go->g_m = offsets->g_m;
	go->m_curg = offsets->m_curg;
	go->g_goid = offsets->g_goid;
	go->g_stack_hi = offsets->g_stack_hi;
	go->g_sched_bp = offsets->g_sched_bp;
	go->labels_kind = labels_kind(version, offsets->g_labels);
	go->g_labels = go->labels_kind == LABELS_NONE ? 0 : offsets->g_labels;
	go->g_status = offsets->g_status;
	go->g_gopc = offsets->g_gopc;
	go->g_startpc = offsets->g_startpc;
	go->g_parent_goid = offsets->g_parent_goid;
	go->g_waitreason = offsets->g_waitreason;
	go->m_lockedg = offsets->m_lockedg;
}

static void put_tls(const struct go_tls *tls, struct index_go *go)
{
	go->g_tls_in_word = tls->word != 0;
	go->g_tls_offset = tls->word ? (int64_t)tls->word : tls->offset;
}

int go_facts_read(struct elf_image *image, struct index_go *ret_go)
{
	struct go_version version;
	struct offsets offsets;
	struct index_go go = { 0 };
	struct go_tls tls;
	int r;

	r = go_version_read(image, &version);
	if (r == -ENOENT) {
		*ret_go = go;
		return 0;
	}
	if (r)
		return r;
	go.version = version.minor;
	go.refusal = find_offsets(image, &version, &offsets);
	if (!go.refusal && go_tls_find(image, &tls))
		go.refusal = INDEX_GO_NO_TLS;
	if (!go.refusal) {
		put_offsets(&version, &offsets, &go);
		put_tls(&tls, &go);
	}
	*ret_go = go;
	return 0;
}

static uint64_t align4(uint32_t size)
{
	return ((uint64_t)size + 3) & ~UINT64_C(3);
}

/* Finds the Go build ID in the notes; names and contents are padded to 4 bytes. */
static struct cursor build_id_note(struct cursor notes)
{
	for (int i = 0; i < MAX_NOTES && cursor_left(&notes); i++) {
		uint32_t name_size = cursor_u32(&notes);
		uint32_t size = cursor_u32(&notes);
		uint32_t type = cursor_u32(&notes);
		const char *name = cursor_bytes(&notes, align4(name_size));
		uint64_t at = cursor_offset(&notes);

		if (name && name_size == 4 && type == NOTE_GO_BUILD_ID && !memcmp(name, "Go", 3))
			return cursor_slice(&notes, at, size);
		cursor_skip(&notes, align4(size));
	}
	return cursor_over(NULL, 0);
}

static struct cursor build_id_of_segments(const struct elf_image *image)
{
	for (size_t i = 0; i < elf_image_segment_count(image); i++) {
		struct elf_segment s = elf_image_segment(image, i);
		struct cursor text;

		if (s.type != PT_NOTE)
			continue;
		text = build_id_note(elf_image_at(image, s.address, s.file_size));
		if (cursor_left(&text))
			return text;
	}
	return cursor_over(NULL, 0);
}

struct cursor go_build_id(struct elf_image *image)
{
	struct cursor text = build_id_note(elf_image_bytes(image, ".note.go.buildid"));

	if (!cursor_left(&text))
		text = build_id_of_segments(image);
	return cursor_left(&text) ? text : cursor_over(NULL, 0);
}
