/* SPDX-License-Identifier: Apache-2.0 */
/* Piece by piece, which libdeflate cannot do: hence zlib. */
#include "symbolizer/indexer/elf/scratch.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/cleanup.h"
#include "base/io.h"

enum {
	LEAST_BYTES = 16 << 20, /* smaller sections stay in memory */
	PIECE_BYTES = 256 << 10, /* that are read, and written, at a time */
	/* 32 MB, of what a stream may refer back to; zstd's highest usual level asks for 8. */
	ZSTD_WINDOW_LOG = 25,
};

/* One section on its way. */
struct inflation {
	struct elf_scratch *scratch;
	const struct elf_image *image;
	struct cursor in;
	uint64_t at, end; /* in the file: of the next byte, and of the section */
	uint64_t forgotten; /* as in elf_image_forget_read() */
	uint8_t *piece; /* PIECE_BYTES */
};

bool scratch_takes(const struct elf_scratch *scratch, uint64_t size)
{
	return scratch && size >= LEAST_BYTES && scratch->limit >= scratch->used &&
	       size <= scratch->limit - scratch->used;
}

/* Writes SIZE bytes of the piece. More than the section says it has is -EBADMSG. */
static int inflation_put(struct inflation *f, size_t size)
{
	int err = size > f->end - f->at ? -EBADMSG
					: io_write_at(f->scratch->fd, f->at, f->piece, size);

	if (!err)
		f->at += size;
	return err;
}

/* Returns the next piece of what is read, and gives back what was. */
static const uint8_t *inflation_take(struct inflation *f, size_t *ret_size)
{
	elf_image_forget_read(f->image, &f->in, cursor_offset(&f->in), &f->forgotten);
	*ret_size = MIN(cursor_left(&f->in), (size_t)PIECE_BYTES);
	return cursor_bytes(&f->in, *ret_size);
}

static int run_zlib(struct inflation *f, z_stream *z)
{
	int status = Z_OK;

	while (status != Z_STREAM_END) {
		int err;

		if (!z->avail_in) {
			size_t size;

			z->next_in = (z_const Bytef *)(uintptr_t)inflation_take(f, &size);
			z->avail_in = (uInt)size;
		}
		z->next_out = f->piece;
		z->avail_out = PIECE_BYTES;
		status = inflate(z, Z_NO_FLUSH);
		if (status == Z_MEM_ERROR)
			return -ENOMEM;
		/* Z_BUF_ERROR: the input is at its end, and the stream is not. */
		if (status != Z_OK && status != Z_STREAM_END)
			return -EBADMSG;
		err = inflation_put(f, PIECE_BYTES - z->avail_out);
		if (err)
			return err;
	}
	return 0;
}

static int inflate_zlib_to(struct inflation *f)
{
	z_stream z = { 0 };
	int err;

	if (inflateInit(&z) != Z_OK)
		return -ENOMEM;
	err = run_zlib(f, &z);
	inflateEnd(&z);
	return err;
}

/* A section may be many frames: lld and mold compress a megabyte at a time. */
static int run_zstd(struct inflation *f, ZSTD_DCtx *context)
{
	ZSTD_inBuffer in = { 0 };
	size_t left = 1; /* 0: at the end of a frame */

	for (;;) {
		ZSTD_outBuffer out = { f->piece, PIECE_BYTES, 0 };
		size_t before;
		int err;

		if (in.pos == in.size) {
			in.src = inflation_take(f, &in.size);
			in.pos = 0;
		}
		if (!in.size && !left)
			return 0;
		before = in.pos;
		left = ZSTD_decompressStream(context, &out, &in);
		if (ZSTD_getErrorCode(left) == ZSTD_error_frameParameter_windowTooLarge)
			return -E2BIG;
		if (ZSTD_isError(left) || (left && !out.pos && in.pos == before))
			return -EBADMSG;
		err = inflation_put(f, out.pos);
		if (err)
			return err;
	}
}

static int inflate_zstd_to(struct inflation *f)
{
	ZSTD_DCtx *context = ZSTD_createDCtx();
	int err = -ENOMEM;

	if (context && !ZSTD_isError(ZSTD_DCtx_setParameter(
			       context, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG)))
		err = run_zstd(f, context);
	ZSTD_freeDCtx(context);
	return err;
}

static int map_inflated(struct inflation *f, void **ret_map)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct elf_scratch *scratch = f->scratch;
	void *map;

	if (f->at != f->end)
		return -EBADMSG;
	map = mmap(NULL, f->end - scratch->used, PROT_READ, MAP_SHARED, scratch->fd,
		(off_t)scratch->used);
	if (map == MAP_FAILED)
		return -errno;
	scratch->used = (f->end + page - 1) & ~(page - 1);
	*ret_map = map;
	return 0;
}

int scratch_inflate(struct elf_scratch *scratch, const struct elf_image *image, struct cursor in,
	uint32_t method, uint64_t size, void **ret_map)
{
	autofree uint8_t *piece = malloc(PIECE_BYTES);
	struct inflation f = {
		.scratch = scratch,
		.image = image,
		.in = in,
		.at = scratch->used,
		.end = scratch->used + size,
		.forgotten = cursor_offset(&in),
		.piece = piece,
	};
	int err = -EBADMSG;

	if (!piece)
		return -ENOMEM;
	if (method == COMPRESSED_ZLIB)
		err = inflate_zlib_to(&f);
	else if (method == COMPRESSED_ZSTD)
		err = inflate_zstd_to(&f);
	elf_image_forget(image, in.start, (size_t)(in.end - in.start));
	if (!err)
		err = map_inflated(&f, ret_map);
	/* What was written would take room from others, and be in the index. */
	if (err && ftruncate(scratch->fd, (off_t)scratch->used))
		scratch->limit = 0;
	return err;
}

int scratch_clear(struct elf_scratch *scratch)
{
	struct stat st;
	int err = io_fstat(scratch->fd, &st);

	if (err)
		return err;
	scratch->used = 0;
	return st.st_size && ftruncate(scratch->fd, 0) ? -errno : 0;
}
