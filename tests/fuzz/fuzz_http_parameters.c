/* SPDX-License-Identifier: Apache-2.0 */
/* Text from clients and administrators: numbers, credentials, origins, addresses. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/server/serve/address.h"
#include "agent/server/serve/parameters.h"
#include "base/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char TOKEN[] = "c2VjcmV0";

static void as_number(const char *text)
{
	static const uint64_t limits[] = { 0, 9, 300, 1 << 22, UINT64_MAX };
	uint64_t number;

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		if (parameters_number(text, limits[i], &number) &&
			(number > limits[i] || strtoull(text, NULL, 10) != number))
			abort();
	}
}

/* Accepted credentials contain the token, or its base64. */
static void as_credentials(const char *text)
{
	if (!parameters_authorized(text, TOKEN) || strstr(text, TOKEN))
		return;
	if (strncasecmp(text, "Basic ", 6))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autofree char *text = strndup((const char *)data, size);
	struct address address;
	char rest[64];

	if (!text)
		return 0;
	as_number(text);
	as_credentials(text);
	if (address_host_is_loopback(text) && !strcasestr(text, "localhost") &&
		!strstr(text, "127.") && *text != '[')
		abort();
	if (!address_parse(text, &address) && (!address.size || (address.any && address.loopback)))
		abort();
	snprintf(rest, sizeof(rest), "%.60s", text + strlen(text) / 2);
	(void)parameters_same_origin(text, rest);
	return 0;
}
