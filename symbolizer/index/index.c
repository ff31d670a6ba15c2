/* SPDX-License-Identifier: Apache-2.0 */
#include "symbolizer/index/index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "base/cleanup.h"
#include "symbolizer/index/index_state.h"

enum { CHECK_BYTES = 1 << 20 };

/* Drops the pages while reading: a big index must not show in the RSS. */
static uint64_t checksum_of(const uint8_t *map, size_t size)
{
	XXH3_state_t *state = XXH3_createState();
	uint64_t sum;

	if (!state)
		return 0;
	XXH3_64bits_reset(state);
	for (size_t at = 0; at < size; at += CHECK_BYTES) {
		size_t part = MIN(size - at, (size_t)CHECK_BYTES);

		XXH3_64bits_update(state, map + at, part);
		madvise((void *)(uintptr_t)(map + at), part, MADV_DONTNEED);
	}
	sum = XXH3_64bits_digest(state);
	XXH3_freeState(state);
	return sum;
}

static bool table_fits(const struct index_header *h, enum index_table_number number)
{
	const struct index_table *t = &h->tables[number];
	uint64_t end = h->file_bytes - INDEX_CHECKSUM_BYTES;

	return t->offset % INDEX_ALIGN == 0 && t->offset <= end && t->count < UINT32_MAX &&
	       t->count * index_element_bytes(number) <= end - t->offset;
}

static bool header_makes_sense(const struct index_header *h, size_t size)
{
	if (h->magic != INDEX_MAGIC || h->version != INDEX_VERSION ||
		h->header_bytes != sizeof(*h) || h->file_bytes != size)
		return false;
	for (int i = 0; i < INDEX_TABLES; i++)
		if (!table_fits(h, i))
			return false;
	return h->tables[INDEX_STRINGS].count && h->span_shift < 32 && h->row_shift < 32 &&
	       h->build_id.size <= BUILD_ID_MAX_BYTES &&
	       h->debug.alternate_id.size <= BUILD_ID_MAX_BYTES;
}

static int check(struct index *index)
{
	uint64_t sum;

	if (index->size < sizeof(index->header) + INDEX_CHECKSUM_BYTES)
		return -EBADMSG;
	memcpy(&index->header, index->map, sizeof(index->header));
	if (!header_makes_sense(&index->header, index->size))
		return -EBADMSG;
	memcpy(&sum, index->map + index->size - INDEX_CHECKSUM_BYTES, sizeof(sum));
	if (sum != checksum_of(index->map, index->size - INDEX_CHECKSUM_BYTES))
		return -EBADMSG;
	/* The final NUL makes each offset into the table a terminated string. */
	if (((const char *)index_table_start(
		    index, INDEX_STRINGS))[index_table_count(index, INDEX_STRINGS) - 1])
		return -EBADMSG;
	return 0;
}

static int map_index(struct index *index, int fd)
{
	struct stat st;
	void *map;

	if (fstat(fd, &st))
		return -errno;
	if (st.st_size <= 0)
		return -EBADMSG;
	map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	index->map = map;
	index->size = (size_t)st.st_size;
	index_touch(index);
	return check(index);
}

static struct index_segment index_read_segment(const struct index *index, size_t number)
{
	const struct index_segment_entry *entries = index_table_start(index, INDEX_SEGMENTS);

	return (struct index_segment){
		.address = entries[number].address,
		.size = entries[number].size,
		.file_off = entries[number].file_off,
	};
}

static void index_read_segments(struct index *index)
{
	size_t count =
		MIN(index_table_count(index, INDEX_SEGMENTS), (size_t)INDEX_SEGMENTS_AT_HAND);

	for (size_t i = 0; i < count; i++)
		index->segments[i] = index_read_segment(index, i);
}

int index_open(int fd, struct index **ret_index)
{
	struct index *index = calloc(1, sizeof(*index));
	int err;

	if (!index)
		return -ENOMEM;
	err = map_index(index, fd);
	if (err) {
		index_destroy(index);
		return err;
	}
	index_read_segments(index);
	index_forget_pages(index);
	*ret_index = index;
	return 0;
}

void index_destroy(struct index *index)
{
	if (!index)
		return;
	if (index->map)
		munmap((void *)(uintptr_t)index->map, index->size);
	free(index);
}

/*
 * One of the two searches: a table of entries that begin with their address, ascending, and its
 * page table.
 */
struct search {
	enum index_table_number entries, pages;
	uint32_t shift;
};

/* Returns the last entry at or below KEY, NULL if there is none. */
static const void *find_entry(const struct index *index, struct search search, uint32_t key)
{
	const uint8_t *entries = index_table_start(index, search.entries);
	const uint32_t *pages = index_table_start(index, search.pages);
	size_t count = index_table_count(index, search.entries);
	size_t size = index_element_bytes(search.entries);
	size_t page = key >> search.shift;
	size_t low = count, high = count;

	if (page + 1 < index_table_count(index, search.pages)) {
		high = MIN(pages[page + 1], count);
		low = MIN(pages[page], high);
	}
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (*(const uint32_t *)(const void *)(entries + middle * size) <= key)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? entries + (low - 1) * size : NULL;
}

static const struct index_span *find_span(const struct index *index, uint32_t key)
{
	const struct search search = { INDEX_SPANS, INDEX_SPAN_PAGES, index->header.span_shift };

	return find_entry(index, search, key);
}

static uint32_t find_node(const struct index *index, uint32_t key)
{
	const struct index_span *span = find_span(index, key);

	return span ? span->node : INDEX_NO_NODE;
}

/* Fills in what is known about file, line and column of the code at KEY. */
static void index_find_place(const struct index *index, uint32_t key, struct index_frame *ret_place)
{
	const struct search search = { INDEX_ROWS, INDEX_ROW_PAGES, index->header.row_shift };
	const struct index_row *row = find_entry(index, search, key);
	const uint32_t *files = index_table_start(index, INDEX_FILES);
	uint32_t file;

	*ret_place = (struct index_frame){ .file = "" };
	if (!row)
		return;
	file = row->place & ((1U << INDEX_FILE_BITS) - 1);
	if (file < index_table_count(index, INDEX_FILES))
		ret_place->file = index_string_at(index, files[file]);
	ret_place->line = row->line;
	ret_place->column = row->place >> INDEX_FILE_BITS;
}

static void name_frame(
	const struct index *index, const struct index_node *node, struct index_frame *frame)
{
	frame->name = index_string_at(index, node->name);
	frame->linkage = index_string_at(index, node->linkage);
	frame->start_line = node->start_line;
	if (!*frame->linkage)
		frame->linkage = frame->name;
	if (!*frame->name)
		frame->name = *frame->linkage ? frame->linkage : "?";
	if (!*frame->linkage)
		frame->linkage = frame->name;
}

size_t index_lookup(
	const struct index *index, uint64_t elf_addr, struct index_frame *ret_frames, size_t max)
{
	const struct index_node *nodes = index_table_start(index, INDEX_NODES);
	uint64_t offset = elf_addr - index->header.base;
	struct index_frame place;
	uint32_t number, before = INDEX_NO_NODE;
	size_t count = 0;

	if (elf_addr < index->header.base || offset >= UINT32_MAX)
		return 0;
	number = find_node(index, (uint32_t)offset);
	if (number >= INDEX_NAMELESS)
		return 0;
	index_find_place(index, (uint32_t)offset, &place);
	/* Each parent must have a lower number, so a forged file cannot make a loop. */
	while (number < index_table_count(index, INDEX_NODES) && number < before && count < max &&
		count < INDEX_MAX_FRAMES) {
		const struct index_node *node = &nodes[number];

		ret_frames[count] = place;
		name_frame(index, node, &ret_frames[count++]);
		place = (struct index_frame){
			.file = index_string_at(index, node->call_file),
			.line = node->call_line,
			.column = node->call_column,
		};
		before = number;
		number = node->parent;
	}
	return count;
}

bool index_nameless(const struct index *index, uint64_t elf_addr, uint64_t *ret_start)
{
	uint64_t offset = elf_addr - index->header.base;
	const struct index_span *span;
	uint32_t distance;

	if (elf_addr < index->header.base || offset >= UINT32_MAX)
		return false;
	span = find_span(index, (uint32_t)offset);
	if (!span || span->node < INDEX_NAMELESS || span->node == INDEX_NO_NODE)
		return false;
	distance = span->node - INDEX_NAMELESS;
	if (distance > span->address)
		return false;
	*ret_start = index->header.base + (span->address - distance);
	return true;
}

size_t index_segment_count(const struct index *index)
{
	return index_table_count(index, INDEX_SEGMENTS);
}

struct index_segment index_segment(const struct index *index, size_t number)
{
	if (number >= index_table_count(index, INDEX_SEGMENTS))
		return (struct index_segment){ 0 };
	return number < INDEX_SEGMENTS_AT_HAND ? index->segments[number]
					       : index_read_segment(index, number);
}

bool index_address(
	const struct index *index, uint64_t file_off, uint64_t *ret_elf_addr, size_t *ret_segment)
{
	for (size_t i = 0; i < index_table_count(index, INDEX_SEGMENTS); i++) {
		struct index_segment s = index_segment(index, i);

		if (file_off < s.file_off || file_off - s.file_off >= s.size)
			continue;
		*ret_elf_addr = s.address + (file_off - s.file_off);
		*ret_segment = i;
		return true;
	}
	return false;
}

bool index_file_off(const struct index *index, uint64_t elf_addr, uint64_t *ret_file_off)
{
	for (size_t i = 0; i < index_segment_count(index); i++) {
		struct index_segment s = index_segment(index, i);

		if (elf_addr < s.address || elf_addr - s.address >= s.size)
			continue;
		*ret_file_off = s.file_off + (elf_addr - s.address);
		return true;
	}
	return false;
}

bool index_keeps_fp(const struct index *index)
{
	/* The code of each kind of runtime so far does. */
	return index->header.runtime.facts[0] != 0;
}

const uint32_t *index_runtime_facts(const struct index *index, uint32_t kind)
{
	const struct index_runtime *runtime = &index->header.runtime;

	return runtime->facts[0] && runtime->kind == kind ? runtime->facts : NULL;
}

const struct build_id *index_build_id(const struct index *index)
{
	return &index->header.build_id;
}

const char *index_text_build_id(const struct index *index)
{
	return index_string_at(index, index->header.text_build_id);
}

bool index_is_of(const struct index *index, const struct module_id *id)
{
	return file_hash_is_none(&id->content) ||
	       file_hash_equal(&id->content, &index->header.file_hash);
}

const struct file_hash *index_file_hash(const struct index *index)
{
	return &index->header.file_hash;
}

const char *index_toolchain(const struct index *index)
{
	return index_string_at(index, index->header.toolchain);
}

uint32_t index_kind(const struct index *index)
{
	return index->header.kind;
}

uint32_t index_sources(const struct index *index)
{
	return index->header.sources;
}

/* A name over the limit counts as "": the file's writer read a foreign file. */
static void index_copy_name(const struct index *index, uint32_t string, char name[DEBUG_NAME_BYTES])
{
	const char *text = index_string_at(index, string);
	size_t length = strlen(text);

	if (length >= DEBUG_NAME_BYTES)
		length = 0;
	memcpy(name, text, length);
	name[length] = 0;
}

bool index_has_own_dwarf(const struct index *index)
{
	return index->header.debug.flags & INDEX_HAS_DWARF;
}

void index_debug_names(const struct index *index, struct debug_names *ret_names, bool *ret_of_debug)
{
	const struct index_debug *debug = &index->header.debug;

	ret_names->build_id = index->header.build_id;
	ret_names->has_dwarf = index_has_own_dwarf(index);
	index_copy_name(index, debug->link, ret_names->link);
	ret_names->link_crc = debug->link_crc;
	index_copy_name(index, debug->alternate, ret_names->alternate);
	ret_names->alternate_id = debug->alternate_id;
	if (strchr(ret_names->link, '/'))
		ret_names->link[0] = 0;
	*ret_of_debug = debug->flags & INDEX_ALTERNATE_OF_DEBUG;
}

bool index_lacks_debug(const struct index *index)
{
	const uint32_t settled =
		INDEX_SOURCE_DWARF | INDEX_SOURCE_PCLNTAB | INDEX_SOURCE_DEBUG_FILES;

	return !(index_sources(index) & settled);
}

bool index_lacks_shared(const struct index *index)
{
	return index_sources(index) & INDEX_SOURCE_NOT_SHARED;
}

bool index_lacks_split(const struct index *index)
{
	return index_wanted_count(index) && !(index_sources(index) & INDEX_SOURCE_SPLIT);
}

size_t index_wanted_count(const struct index *index)
{
	return index_table_count(index, INDEX_WANTED);
}

const char *index_wanted(const struct index *index, size_t number)
{
	const uint32_t *wanted = index_table_start(index, INDEX_WANTED);

	return index_string_at(index, wanted[number]);
}

size_t index_bytes(const struct index *index)
{
	return index->size;
}

const void *index_file(const struct index *index)
{
	index_touch(index);
	return index->map;
}

void index_forget_pages(struct index *index)
{
	if (!index->touched)
		return;
	index->touched = false;
	madvise((void *)(uintptr_t)index->map, index->size, MADV_DONTNEED);
}
