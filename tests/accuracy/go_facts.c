/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a file's Go facts in one line; tests/accuracy/go.sh compares them between twins. */
#include <fcntl.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "symbolizer/indexer/go/go.h"

int main(int argc, char **argv)
{
	autoclose int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
	struct elf_image *image;
	struct index_go go;
	int r;

	if (fd < 0 || elf_image_open(fd, &image))
		return 1;
	r = go_facts_read(image, &go);
	elf_image_destroy(image);
	if (r)
		return 1;
	printf("go1.%u supported=%u refusal=%u g=%s%ld m=%u curg=%u goid=%u hi=%u bp=%u "
	       "labels=%u/%u "
	       "status=%u gopc=%u startpc=%u parent=%u wait=%u locked=%u\n",
		go.version, go.supported, go.refusal, go.g_tls_in_word ? "word at " : "",
		(long)go.g_tls_offset, go.g_m, go.m_curg, go.g_goid, go.g_stack_hi, go.g_sched_bp,
		go.g_labels, go.labels_kind, go.g_status, go.g_gopc, go.g_startpc, go.g_parent_goid,
		go.g_waitreason, go.m_lockedg);
	return 0;
}
