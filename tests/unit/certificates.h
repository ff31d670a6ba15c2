/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Test certificates: an authority, and leaf certificates that it signs. */
#include <stddef.h>

struct authority;

struct authority *authority_create(const char *name);
void authority_destroy(struct authority *a);
/* Writes the authority's certificate to the file PATH (PEM). */
void authority_write(const struct authority *a, const char *path);
/*
 * A certificate for the DNS name NAME, and for 127.0.0.1 if that is "localhost", valid from FROM_S
 * to TO_S seconds from now. CERTIFICATE and KEY are the PEM files to write.
 */
struct leaf {
	const char *name;
	long from_s, to_s;
	const char *certificate, *key;
};
void authority_sign(const struct authority *a, const struct leaf *leaf);
