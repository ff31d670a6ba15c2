/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/indexer/cfi/eh_frame.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "symbolizer/indexer/cfi/eh_frame_cfa.h"
#include "symbolizer/indexer/cfi/eh_frame_rule.h"

enum {
	MAX_CIES = 1 << 18,
	MAX_CIE_RATIO = 4, /* instructions of CIEs to the section; they are a tiny part */
	LENGTH_IS_64_BIT = 0xffffffff,
	POINTER_BYTES = 8,
};
static const uint64_t MAX_SECTION_BYTES = UINT32_MAX; /* offsets have 32 bits */

/* DW_EH_PE_*: pointer encodings (LSB 5, 10.5). */
enum {
	ENCODING_ABSOLUTE = 0x00,
	ENCODING_ULEB128 = 0x01,
	ENCODING_U16 = 0x02,
	ENCODING_U32 = 0x03,
	ENCODING_U64 = 0x04,
	ENCODING_SIGNED = 0x08,
	ENCODING_SLEB128 = 0x09,
	ENCODING_S16 = 0x0a,
	ENCODING_S32 = 0x0b,
	ENCODING_S64 = 0x0c,
	ENCODING_FORMAT = 0x0f,
	ENCODING_PC = 0x10,
	ENCODING_TEXT = 0x20,
	ENCODING_DATA = 0x30,
	ENCODING_FUNCTION = 0x40,
	ENCODING_ALIGNED = 0x50,
	ENCODING_RELATIVE = 0x70,
	ENCODING_INDIRECT = 0x80,
	ENCODING_OMIT = 0xff,
};

void cfi_entries_init(struct cfi_entries *e)
{
	*e = (struct cfi_entries){ 0 };
	map_init(&e->cie_numbers, MAX_CIES);
}

void cfi_entries_deinit(struct cfi_entries *e)
{
	free(e->cies);
	map_deinit(&e->cie_numbers);
}

static uint64_t read_value(struct cursor *c, uint8_t encoding)
{
	switch (encoding & ENCODING_FORMAT) {
	case ENCODING_ULEB128:
		return cursor_uleb128(c);
	case ENCODING_SLEB128:
		return (uint64_t)cursor_sleb128(c);
	case ENCODING_U16:
		return cursor_u16(c);
	case ENCODING_S16:
		return (uint64_t)(int16_t)cursor_u16(c);
	case ENCODING_U32:
		return cursor_u32(c);
	case ENCODING_S32:
		return (uint64_t)(int32_t)cursor_u32(c);
	case ENCODING_ABSOLUTE:
	case ENCODING_U64:
	case ENCODING_SIGNED:
	case ENCODING_S64:
		return cursor_u64(c);
	default:
		c->bad = true;
		return 0;
	}
}

static bool base_of(const struct cfi_section *s, uint8_t encoding, uint64_t here, uint64_t function,
	uint64_t *ret_base)
{
	switch (encoding & ENCODING_RELATIVE) {
	case ENCODING_ABSOLUTE:
	case ENCODING_ALIGNED:
		*ret_base = 0;
		return true;
	case ENCODING_PC:
		*ret_base = here;
		return true;
	case ENCODING_TEXT:
		*ret_base = s->text;
		return s->text;
	case ENCODING_DATA:
		*ret_base = s->data;
		return s->data;
	case ENCODING_FUNCTION:
		*ret_base = function;
		return true;
	default:
		return false;
	}
}

static uint64_t eh_frame_address_of(const struct cfi_section *s, const struct cursor *c)
{
	return s->address + (uint64_t)(c->at - s->bytes.start);
}

static void align_pointer(const struct cfi_section *s, struct cursor *c, uint8_t encoding)
{
	if ((encoding & ENCODING_RELATIVE) == ENCODING_ALIGNED)
		cursor_skip(c, -eh_frame_address_of(s, c) & (POINTER_BYTES - 1));
}

bool cfi_pointer(const struct cfi_section *s, struct cursor *c, uint8_t encoding, uint64_t function,
	uint64_t *ret_pointer)
{
	uint64_t base, value;

	/* The dynamic linker fills in indirect pointers; they are not used for code. */
	if (encoding & ENCODING_INDIRECT)
		return false;
	align_pointer(s, c, encoding);
	if (!base_of(s, encoding, eh_frame_address_of(s, c), function, &base))
		return false;
	value = read_value(c, encoding);
	if (c->bad)
		return false;
	*ret_pointer = base + value;
	return true;
}

/* Reads a CIE's augmentation data, as described by LETTERS. */
static bool read_augmentation(
	const struct cfi_section *s, const char *letters, struct cursor *c, struct cfi_cie *cie)
{
	uint8_t encoding;

	for (; *letters; letters++) {
		switch (*letters) {
		case 'S':
			cie->signal = true;
			continue;
		case 'B': /* aarch64: return addresses are signed with key B */
		case 'G': /* aarch64: tagged stack */
			continue;
		case 'R':
			cie->encoding = cursor_u8(c);
			continue;
		case 'L':
			cursor_u8(c);
			continue;
		case 'P':
			encoding = cursor_u8(c);
			if (encoding == ENCODING_OMIT)
				continue;
			align_pointer(s, c, encoding & ~ENCODING_INDIRECT);
			read_value(c, encoding);
			continue;
		default:
			return false;
		}
	}
	return !c->bad;
}

/* C starts after the CIE's id and ends with the entry. */
static bool parse_cie(const struct cfi_section *s, struct cursor c, struct cfi_cie *cie)
{
	uint8_t version = cursor_u8(&c);
	const char *letters = cursor_string(&c);
	struct cursor data;
	uint64_t ra;

	if (!letters || (version != 1 && version != 3 && version != 4))
		return false;
	if (version == 4 && (cursor_u8(&c) != POINTER_BYTES || cursor_u8(&c) != 0))
		return false;
	cie->code_align = cursor_uleb128(&c);
	cie->data_align = cursor_sleb128(&c);
	ra = version == 1 ? cursor_u8(&c) : cursor_uleb128(&c);
	cie->ra_elsewhere = ra != cfi_machine(s).ra;
	data = c;
	if (*letters == 'z') {
		uint64_t size = cursor_uleb128(&c);

		data.at = c.at;
		cursor_skip(&c, size);
		cie->sized = true;
		letters++;
	}
	data.end = c.at; /* without 'z' there is no augmentation data */
	if (c.bad || !read_augmentation(s, letters, &data, cie))
		return false;
	cie->code = (uint32_t)(c.at - s->bytes.start);
	cie->code_size = (uint32_t)cursor_left(&c);
	return true;
}

/* The part of an entry after its length. */
struct entry {
	struct cursor c; /* after the id */
	uint64_t id_offset, id;
	bool empty, is_cie;
};

/* Returns false at the end, and, with ALL bad, if the length is malformed. */
static inline bool next_entry(
	const struct cfi_section *s, struct cursor *all, struct entry *ret_entry)
{
	uint64_t length = cursor_u32(all), id, none;
	struct entry entry = { 0 };
	bool wide = length == LENGTH_IS_64_BIT;

	if (wide)
		length = cursor_u64(all);
	if (all->bad)
		return false;
	entry.c = *all;
	entry.id_offset = (uint64_t)(all->at - s->bytes.start);
	if (!cursor_skip(all, length))
		return false;
	entry.c.end = all->at;
	if (!length) {
		entry.empty = true;
		*ret_entry = entry;
		return !s->ends_at_zero;
	}
	/* In .eh_frame the id has 32 bits in both formats. */
	wide = wide && !s->eh;
	id = wide ? cursor_u64(&entry.c) : cursor_u32(&entry.c);
	none = wide ? UINT64_MAX : UINT32_MAX;
	entry.is_cie = s->eh ? id == 0 : id == none;
	entry.id = id;
	*ret_entry = entry;
	return true;
}

static int add_cie(const struct cfi_section *s, struct cfi_entries *e, uint64_t offset)
{
	struct cursor all = cursor_over(s->bytes.start, (size_t)(s->bytes.end - s->bytes.start));
	struct cfi_cie cie = { .broken = true };
	struct entry entry;
	int err;

	if (cursor_seek(&all, offset) && next_entry(s, &all, &entry) && entry.is_cie)
		cie.broken = !parse_cie(s, entry.c, &cie);
	err = array_reserve(e->cies, e->cie_capacity, e->cie_count + 1, MAX_CIES);
	if (!err)
		err = map_set(&e->cie_numbers, offset, e->cie_count);
	if (err)
		return err;
	e->cie_bytes += cie.code_size;
	if (e->cie_bytes > MAX_CIE_RATIO * (uint64_t)(s->bytes.end - s->bytes.start))
		cie.broken = true;
	if (!cie.broken)
		cfi_start(s, &cie);
	e->cies[e->cie_count++] = cie;
	return 0;
}

/*
 * Gets the number of the CIE at OFFSET. Each is read once, when the first FDE refers to it. Returns
 * -EBADMSG over the limit.
 */
static int find_cie(
	const struct cfi_section *s, struct cfi_entries *e, uint64_t offset, uint32_t *ret_number)
{
	uint64_t number;
	int err;

	if (!e->cie_count || offset != e->last_offset) {
		if (!map_get(&e->cie_numbers, offset, &number)) {
			if (e->cie_count == MAX_CIES)
				return -EBADMSG;
			number = e->cie_count;
			err = add_cie(s, e, offset);
			if (err)
				return err;
		}
		e->last_offset = offset;
		e->last_number = (uint32_t)number;
	}
	*ret_number = e->last_number;
	return 0;
}

/* Reads an FDE's range, with a fast path for the encoding that nearly all files use. */
static inline bool read_range(const struct cfi_section *s, const struct cfi_cie *cie,
	struct cursor *c, struct cfi_fde *fde)
{
	const uint64_t here = eh_frame_address_of(s, c);

	if (cie->encoding == (ENCODING_PC | ENCODING_S32)) {
		fde->low = here + (uint64_t)(int32_t)cursor_u32(c);
		fde->size = (uint64_t)(int32_t)cursor_u32(c);
		return true;
	}
	if (!cfi_pointer(s, c, cie->encoding, 0, &fde->low))
		return false;
	/* The size is a plain number in the format of the address. */
	fde->size = read_value(c, cie->encoding);
	return true;
}

static bool parse_fde(const struct cfi_section *s, const struct cfi_cie *cie, struct cursor c,
	struct cfi_fde *fde)
{
	if (cie->broken || !read_range(s, cie, &c, fde))
		return false;
	if (cie->sized)
		cursor_skip(&c, cfi_uleb(&c));
	fde->code = (uint32_t)(c.at - s->bytes.start);
	fde->code_size = (uint32_t)cursor_left(&c);
	return !c.bad;
}

/* An FDE refers to its CIE by distance backwards (.eh_frame) or by offset (.debug_frame). */
static uint64_t cie_offset(const struct cfi_section *s, const struct entry *entry)
{
	return s->eh ? entry->id_offset - entry->id : entry->id;
}

static int read_fde(const struct cfi_section *s, struct cfi_entries *e, const struct entry *entry,
	cfi_fde_sink *sink, void *context)
{
	struct cfi_fde fde = { 0 };
	int err = find_cie(s, e, cie_offset(s, entry), &fde.cie);

	if (err && err != -EBADMSG)
		return err;
	if (!err && parse_fde(s, &e->cies[fde.cie], entry->c, &fde))
		return sink(context, &fde);
	e->broken++;
	return 0;
}

int cfi_read(const struct cfi_section *s, struct cfi_entries *e, cfi_fde_sink *sink, void *context)
{
	struct cursor all = s->bytes;
	struct entry entry;
	int err = 0;

	if (cursor_left(&all) > MAX_SECTION_BYTES)
		return -EBADMSG;
	while (!err && cursor_left(&all) && next_entry(s, &all, &entry)) {
		if (entry.c.bad)
			e->broken++;
		else if (!entry.empty && !entry.is_cie)
			err = read_fde(s, e, &entry, sink, context);
	}
	e->broken += all.bad;
	return err;
}
