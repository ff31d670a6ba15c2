/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Certificates that a test makes for itself: an authority, and what it signs. */
#include <stddef.h>

struct authority;

struct authority *authority_create(const char *name);
void authority_destroy(struct authority *a);
/* Its own certificate into the file PATH (PEM). */
void authority_write(const struct authority *a, const char *path);
/*
 * A certificate for the DNS name NAME and 127.0.0.1 (only the name when it is not "localhost"),
 * valid from FROM_S to TO_S seconds from now; certificate and key into PEM files.
 */
struct leaf {
	const char *name;
	long from_s, to_s;
	const char *certificate, *key;
};
void authority_sign(const struct authority *a, const struct leaf *leaf);
