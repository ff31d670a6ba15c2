/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/collect/embedded_object.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/gzip.h"

enum { MAX_OBJECT_BYTES = 4 << 20 };

void *embedded_object(const char *compressed, size_t size, size_t *ret_size)
{
	struct buffer object;

	buffer_init(&object, MAX_OBJECT_BYTES);
	if (gzip_inflate(compressed, size, &object)) {
		buffer_deinit(&object);
		return NULL;
	}
	*ret_size = object.size;
	return object.bytes;
}

void embedded_object_close_types(struct bpf_object *object)
{
	struct btf *btf = bpf_object__btf(object);
	int fd = btf ? btf__fd(btf) : -1;

	if (fd < 0)
		return;
	btf__set_fd(btf, -1);
	close(fd);
}
