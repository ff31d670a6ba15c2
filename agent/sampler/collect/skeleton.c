/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/collect/skeleton.h"

#include <bpf/libbpf.h>

#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/gzip.h"

enum {
	OBJECT_LIMIT_BYTES = 4 << 20,
};

int skeleton_open(struct bpf_object_skeleton *s, const struct bpf_object_open_opts *opts)
{
	autocall(buffer_deinit) struct buffer object;
	const void *compressed = s->data;
	size_t size = s->data_sz;
	int err;

	buffer_init(&object, OBJECT_LIMIT_BYTES);
	err = gzip_inflate(compressed, size, &object);
	if (err)
		return err;
	s->data = object.bytes;
	s->data_sz = object.size;
	err = bpf_object__open_skeleton(s, opts);
	/* libbpf has copied what it wants of the object. */
	s->data = compressed;
	s->data_sz = size;
	return err;
}
