/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/daemon/slices.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/json.h"

enum { PATH_BYTES = 64 };

static const int64_t MS_NS = INT64_C(1000000);
static const int64_t MINUTE_NS = INT64_C(60000000000);
/* The page shows as much window by window. */
static const int64_t SHOWN_BY_FILE_NS = INT64_C(90) * 60 * 1000000000;

int64_t slices_length_ns(int64_t span_ns, unsigned int most)
{
	static const int minutes[] = { 10, 20, 30, 60, 120, 240, 480, 1440, 10080 };
	size_t i = 0;

	while (i < ARRAY_SIZE(minutes) - 1 && span_ns / minutes[i] / MINUTE_NS >= (int64_t)most)
		i++;
	return minutes[i] * MINUTE_NS;
}

int64_t slices_begin_ns(int64_t time_ns, int64_t length_ns)
{
	int64_t in = time_ns % length_ns;

	return time_ns - (in < 0 ? in + length_ns : in);
}

/* Files that begin in the same slice, so far. */
struct slice {
	int64_t begin_ns;
	int64_t first_ns, covered_ns; /* of the files; what several cover counts once */
	int64_t end_ns; /* of what is covered */
	uint64_t bytes; /* 0 = there are no files */
};

static void slice_add(struct slice *slice, const struct store_file *file)
{
	int64_t begin_ns = MAX(file->time_ns, slice->end_ns);
	int64_t end_ns = file->time_ns + file->duration_ns;

	if (end_ns > begin_ns) {
		slice->covered_ns += end_ns - begin_ns;
		slice->end_ns = end_ns;
	}
	slice->bytes += file->size_bytes;
}

static void slice_write(const struct slice *slice, int64_t length_ns, struct json *j)
{
	char path[PATH_BYTES];

	if (!slice->bytes)
		return;
	snprintf(path, sizeof(path), "slice/%" PRId64, slice->begin_ns / MS_NS);
	json_object(j, NULL);
	json_text(j, "path", path);
	json_text(j, "name", "");
	json_signed(j, "time_ms", slice->first_ns / MS_NS);
	json_signed(j, "duration_ms", slice->covered_ns / MS_NS);
	json_number(j, "bytes", slice->bytes);
	json_signed(j, "slice_ms", length_ns / MS_NS);
	json_close(j);
}

bool slices_choose(const struct store *s, int64_t from_ns, int64_t to_ns, unsigned int most,
	struct slices *ret_slices)
{
	int64_t first_ns = INT64_MAX, end_ns = INT64_MIN;
	struct store_file file;
	size_t iterator = 0;

	while (store_next(s, &iterator, from_ns, to_ns, &file)) {
		first_ns = MIN(first_ns, file.time_ns);
		end_ns = MAX(end_ns, file.time_ns + file.duration_ns);
	}
	if (first_ns == INT64_MAX)
		return false;
	first_ns = MAX(from_ns, first_ns);
	if (end_ns - first_ns <= SHOWN_BY_FILE_NS)
		return false;
	ret_slices->length_ns = slices_length_ns(end_ns - first_ns, most);
	ret_slices->from_ns = slices_begin_ns(first_ns, ret_slices->length_ns);
	return true;
}

int slices_write(
	const struct store *s, const struct slices *slices, int64_t to_ns, struct buffer *out)
{
	const int64_t length_ns = slices->length_ns;
	struct slice slice = { 0 };
	struct store_file file;
	size_t iterator = 0;
	struct json j;

	json_init(&j, out, JSON_COMPACT);
	json_array_by_line(&j, NULL);
	while (store_next(s, &iterator, slices->from_ns, to_ns, &file)) {
		int64_t begin_ns = slices_begin_ns(file.time_ns, length_ns);

		if (begin_ns < slices->from_ns)
			continue;
		if (!slice.bytes || begin_ns != slice.begin_ns) {
			slice_write(&slice, length_ns, &j);
			slice = (struct slice){ .begin_ns = begin_ns,
				.first_ns = file.time_ns,
				.end_ns = file.time_ns };
		}
		slice_add(&slice, &file);
	}
	slice_write(&slice, length_ns, &j);
	json_close(&j);
	json_finish(&j);
	return buffer_string(out, "\n");
}
