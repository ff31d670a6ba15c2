/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cfi_writer.h"

#include <assert.h>
#include <stdio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "symbolizer/indexer/builder.h"
#include "tests/unit/bytes.h"

enum { PCREL_SDATA4 = 0x1b, MAX_BYTES = 1 << 24 };

void cfi_writer_init(struct cfi_writer *w, uint16_t machine)
{
	*w = (struct cfi_writer){ .machine = machine, .ra = machine == EM_AARCH64 ? 30 : 16 };
	buffer_init(&w->bytes, MAX_BYTES);
}

void cfi_writer_deinit(struct cfi_writer *w)
{
	buffer_deinit(&w->bytes);
}

/* Returns where the length is to be set by end_entry(). */
static size_t begin_entry(struct cfi_writer *w)
{
	size_t at = w->bytes.size;

	put_u32(&w->bytes, w->wide ? 0xffffffff : 0);
	if (w->wide)
		put_u64(&w->bytes, 0);
	return at;
}

static void end_entry(struct cfi_writer *w, size_t at)
{
	while (w->bytes.size % 8)
		put_u8(&w->bytes, 0);
	if (w->wide)
		set_u64(&w->bytes, at + 4, w->bytes.size - at - 12);
	else
		set_u32(&w->bytes, at, (uint32_t)(w->bytes.size - at - 4));
}

static void put_id(struct cfi_writer *w, uint64_t id)
{
	if (w->debug && w->wide)
		put_u64(&w->bytes, id);
	else
		put_u32(&w->bytes, (uint32_t)id);
}

uint64_t cfi_writer_cie(
	struct cfi_writer *w, const char *augmentation, const uint8_t *code, size_t size)
{
	size_t at = begin_entry(w), length;

	put_id(w, w->debug ? UINT64_MAX : 0);
	put_u8(&w->bytes, 1);
	put_string(&w->bytes, augmentation);
	put_uleb128(&w->bytes, w->machine == EM_AARCH64 ? 4 : 1);
	put_sleb128(&w->bytes, -8);
	put_u8(&w->bytes, w->ra);
	if (*augmentation == 'z') {
		length = w->bytes.size;
		put_u8(&w->bytes, 0);
		for (const char *letter = augmentation + 1; *letter; letter++)
			if (*letter == 'R')
				put_u8(&w->bytes, PCREL_SDATA4);
		w->bytes.bytes[length] = (uint8_t)(w->bytes.size - length - 1);
	}
	buffer_append(&w->bytes, code, size);
	end_entry(w, at);
	return at;
}

uint64_t cfi_writer_usual_cie(struct cfi_writer *w)
{
	const char *augmentation = w->debug ? "" : "zR";

	if (w->machine == EM_AARCH64)
		return cfi_writer_cie(w, augmentation, CFI(DEF_CFA(31, 0)));
	return cfi_writer_cie(w, augmentation, CFI(DEF_CFA(7, 8), OFFSET(16, 1)));
}

void cfi_writer_fde(struct cfi_writer *w, uint64_t cie, uint64_t low, uint64_t range,
	const uint8_t *code, size_t size)
{
	size_t at = begin_entry(w);

	put_id(w, w->debug ? cie : w->bytes.size - cie);
	if (w->debug) {
		put_u64(&w->bytes, low);
		put_u64(&w->bytes, range);
	} else {
		put_u32(&w->bytes, (uint32_t)(low - (CFI_ADDRESS + w->bytes.size)));
		put_u32(&w->bytes, (uint32_t)range);
		put_u8(&w->bytes, 0); /* bytes of augmentation data */
	}
	buffer_append(&w->bytes, code, size);
	end_entry(w, at);
}

void cfi_writer_raw(struct cfi_writer *w, const void *bytes, size_t size)
{
	put_u32(&w->bytes, (uint32_t)size);
	buffer_append(&w->bytes, bytes, size);
}

struct cfi_section cfi_writer_section(const struct cfi_writer *w)
{
	assert(!w->bytes.error);
	return (struct cfi_section){
		.bytes = cursor_over(w->bytes.bytes, w->bytes.size),
		.address = CFI_ADDRESS,
		.machine = w->machine,
		.kept = w->kept,
		.eh = !w->debug,
	};
}

struct index *cfi_index_of(struct elf_writer *elf, struct cfi_writer *cfi)
{
	autoclose int output = memory_file("", 0);
	autoclose int fd = -1;
	struct sandbox_result result;
	struct index *index = NULL;
	int err;

	elf_writer_section(elf, &(struct elf_section_spec){ .name = ".eh_frame",
					.flags = SHF_ALLOC,
					.address = CFI_ADDRESS,
					.bytes = cfi->bytes.bytes,
					.size = cfi->bytes.size });
	cfi_writer_deinit(cfi);
	fd = elf_writer_file(elf);
	elf_writer_deinit(elf);
	err = builder_run(fd, output, &result);
	assert(!err);
	err = index_open(output, &index);
	assert(!err);
	return index;
}

struct index *cfi_index_beside(uint16_t machine, const struct elf_section_spec *section,
	uint64_t described, uint64_t entry)
{
	struct elf_writer elf;
	struct cfi_writer cfi;
	uint64_t cie;

	elf_writer_init(&elf);
	elf.machine = machine;
	elf.entry_point = entry;
	elf_writer_code(&elf, ".text", CFI_TEXT, 0x100);
	elf_writer_section(&elf, section);
	cfi_writer_init(&cfi, machine);
	cie = cfi_writer_usual_cie(&cfi);
	cfi_writer_fde(&cfi, cie, CFI_TEXT, 0x100, NO_CODE);
	if (described)
		cfi_writer_fde(&cfi, cie, section->address, described, CFI(DEF_CFA_OFFSET(48)));
	return cfi_index_of(&elf, &cfi);
}

struct index *cfi_writer_index(const struct cfi_writer *w, const struct cfi_writer *other)
{
	const struct source_range nothing = { 0 };
	struct index_writer *writer = index_writer_create();
	struct cfi_section sections[2] = { cfi_writer_section(w) };
	autoclose int fd = memory_file("", 0);
	struct index *index = NULL;
	int err;

	if (other)
		sections[1] = cfi_writer_section(other);
	err = writer_code(writer, CFI_TEXT, CFI_TEXT_SIZE);
	assert(!err);
	err = unwind_read_sections(sections, other ? 2 : 1, 0, &nothing, writer);
	assert(!err);
	err = writer_finish(writer, fd);
	assert(!err);
	index_writer_destroy(writer);
	err = index_open(fd, &index);
	assert(!err);
	return index;
}

static void put_register(struct buffer *b, const char *name, int rule, int offset)
{
	static const char *const words[] = { "same", "[cfa", "undefined", "unsupported", "[fp" };

	buffer_printf(b, " %s=%s", name, words[rule]);
	if (rule == ABI_REG_AT_CFA || rule == ABI_REG_AT_FP)
		buffer_printf(b, "%+d]", offset);
}

static void put_rule(struct buffer *b, const struct abi_unwind_rule *r)
{
	static const char *const words[] = { "none", "sp", "fp", "plt", "[sp", "[fp", "", "signal",
		"end", "unsupported" };

	buffer_printf(b, "%s", words[r->cfa]);
	if (r->cfa == ABI_CFA_NONE || r->cfa >= ABI_CFA_SIGNAL)
		return;
	if (r->cfa == ABI_CFA_REG && r->extra & ABI_CFA_REG_INDEX)
		buffer_printf(b, "[sp+8*r%u", r->extra & (ABI_CFA_REG_INDEX - 1));
	else if (r->cfa == ABI_CFA_REG)
		buffer_printf(b, "r%u", r->extra);
	buffer_printf(b, "%+d", r->cfa_off);
	if (r->cfa == ABI_CFA_DEREF_SP || r->cfa == ABI_CFA_DEREF_FP ||
		(r->cfa == ABI_CFA_REG && r->extra & ABI_CFA_REG_INDEX))
		buffer_printf(b, "]%+d", r->ra_off);
	put_register(b, "fp", r->fp, r->fp_off);
	put_register(b, "ra", r->ra, r->ra_off);
	if (r->cfa != ABI_CFA_REG && r->extra >> ABI_UNWIND_KEPT_SHIFT)
		buffer_printf(b, " %s=-%u words", r->extra & ABI_UNWIND_KEPT_RBX ? "rbx" : "r12",
			r->extra >> ABI_UNWIND_KEPT_SHIFT & ABI_UNWIND_KEPT_WORDS);
}

const char *cfi_rule_at(const struct index *index, uint64_t address)
{
	const struct abi_unwind_page *page;
	struct abi_unwind_rule rule;
	static char text[128];
	struct buffer b;
	size_t size;

	if (!index_unwind_page(index, address, &page, &size))
		return "none";
	if (!unwind_rule_at(page, size, address & 0xffff, &rule))
		return "broken";
	buffer_init(&b, sizeof(text));
	put_rule(&b, &rule);
	snprintf(text, sizeof(text), "%.*s", (int)b.size, (const char *)b.bytes);
	buffer_deinit(&b);
	return text;
}

const char *cfi_rule_of(uint16_t machine, const uint8_t *code, size_t size)
{
	struct cfi_writer w;
	struct index *index;
	const char *text;

	cfi_writer_init(&w, machine);
	cfi_writer_fde(&w, cfi_writer_usual_cie(&w), CFI_TEXT, 64, code, size);
	index = cfi_writer_index(&w, NULL);
	text = cfi_rule_at(index, CFI_TEXT + 32);
	index_destroy(index);
	cfi_writer_deinit(&w);
	return text;
}
