/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/collect/libbpf_log.h"

#include <bpf/libbpf.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"

/* Logs libbpf's messages, including the verifier's log, if the user asked for them. */
static int libbpf_log_print(enum libbpf_print_level level, const char *format, va_list arguments)
{
	autofree char *text = NULL;
	char *rest, *line;

	if (level == LIBBPF_DEBUG || !log_enabled(LOG_DEBUG))
		return 0;
	if (vasprintf(&text, format, arguments) < 0) {
		text = NULL;
		return 0;
	}
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		for (char *c = line; *c; c++)
			if (*c == '"' || (unsigned char)*c < ' ')
				*c = '\'';
		log_debug("libbpf", "text=\"%s\"", line);
	}
	return 0;
}

void libbpf_log_init(void)
{
	libbpf_set_print(libbpf_log_print);
}
