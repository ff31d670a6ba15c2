/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/server/metadata/kubernetes/api_server.h"
#include "base/cleanup.h"

static bool api_access_copy(char *to, size_t size, const char *from, const char *allowed)
{
	size_t length = strlen(from);

	if (!length || length >= size || strspn(from, allowed) != length)
		return false;
	memcpy(to, from, length + 1);
	return true;
}

int api_access_init(struct api_access *access, const char *directory, const char *node)
{
	static const char digits[] = "0123456789";
	static const char host_letters[] =
		"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:";
	static const char node_letters[] = "0123456789abcdefghijklmnopqrstuvwxyz.-";
	const char *host = getenv("KUBERNETES_SERVICE_HOST");
	const char *port = getenv("KUBERNETES_SERVICE_PORT");

	*access = (struct api_access){ 0 };
	if (!host || !*host || !port || !*port)
		return -ENOENT;
	if (!api_access_copy(access->host, sizeof(access->host), host, host_letters) ||
		!api_access_copy(access->port, sizeof(access->port), port, digits) ||
		(size_t)snprintf(access->directory, sizeof(access->directory), "%s", directory) >=
			sizeof(access->directory))
		return -EINVAL;
	return api_access_copy(access->node, sizeof(access->node), node, node_letters) ? 0 : -EDOM;
}
