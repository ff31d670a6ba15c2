/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/collect/mechanisms.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

static const struct {
	const char *name;
	enum mechanism mechanism;
} mechanisms[] = {
	{ "vma-lookup", MECHANISM_VMA_LOOKUP },
	{ "own-rings", MECHANISM_OWN_RINGS },
	{ "kernel-walk", MECHANISM_KERNEL_WALK },
	{ "packed-stacks", MECHANISM_PACKED_STACKS },
	{ "packed-rules", MECHANISM_PACKED_RULES },
	{ "uprobe-multi", MECHANISM_UPROBE_MULTI },
	{ "attach-cookie", MECHANISM_ATTACH_COOKIE },
	{ "fentry", MECHANISM_FENTRY },
	{ "kprobe-session", MECHANISM_KPROBE_SESSION },
	{ "kprobe-multi", MECHANISM_KPROBE_MULTI },
	{ "process-uprobes", MECHANISM_PROCESS_UPROBES },
};

/* Returns 0 if there is none of this name. */
static uint32_t mechanism_named(const char *name, size_t length)
{
	for (size_t i = 0; i < ARRAY_SIZE(mechanisms); i++) {
		if (strlen(mechanisms[i].name) == length &&
			!memcmp(mechanisms[i].name, name, length))
			return mechanisms[i].mechanism;
	}
	return 0;
}

int mechanisms_parse(const char *names, uint32_t *ret_mechanisms)
{
	uint32_t found = 0;

	while (names) {
		size_t length = strcspn(names, ",");
		uint32_t mechanism = mechanism_named(names, length);

		if (!mechanism)
			return -EINVAL;
		found |= mechanism;
		names = names[length] ? names + length + 1 : NULL;
	}
	*ret_mechanisms = found;
	return 0;
}
