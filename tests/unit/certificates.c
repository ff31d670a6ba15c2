/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/certificates.h"

#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct authority {
	X509 *certificate;
	EVP_PKEY *key;
};

static EVP_PKEY *make_key(void)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");

	if (!key)
		abort();
	return key;
}

static void set_name(X509_NAME *to, const char *name)
{
	if (X509_NAME_add_entry_by_txt(
		    to, "CN", MBSTRING_UTF8, (const unsigned char *)name, -1, -1, 0) != 1)
		abort();
}

static void add_extension(X509 *certificate, X509 *issuer, int kind, const char *value)
{
	X509_EXTENSION *extension;
	X509V3_CTX context;

	X509V3_set_ctx_nodb(&context);
	X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
	extension = X509V3_EXT_conf_nid(NULL, &context, kind, value);
	if (!extension || X509_add_ext(certificate, extension, -1) != 1)
		abort();
	X509_EXTENSION_free(extension);
}

static X509 *make_certificate(EVP_PKEY *key, const char *name, long from_s, long to_s)
{
	X509 *certificate = X509_new();
	int serial = rand();

	if (!certificate || X509_set_version(certificate, 2) != 1 ||
		ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial) != 1 ||
		X509_set_pubkey(certificate, key) != 1)
		abort();
	X509_gmtime_adj(X509_getm_notBefore(certificate), from_s);
	X509_gmtime_adj(X509_getm_notAfter(certificate), to_s);
	set_name(X509_get_subject_name(certificate), name);
	return certificate;
}

struct authority *authority_create(const char *name)
{
	struct authority *a = calloc(1, sizeof(*a));

	if (!a)
		abort();
	a->key = make_key();
	a->certificate = make_certificate(a->key, name, -3600, 3600);
	X509_set_issuer_name(a->certificate, X509_get_subject_name(a->certificate));
	add_extension(a->certificate, a->certificate, NID_basic_constraints, "critical,CA:TRUE");
	add_extension(a->certificate, a->certificate, NID_subject_key_identifier, "hash");
	if (!X509_sign(a->certificate, a->key, EVP_sha256()))
		abort();
	return a;
}

void authority_destroy(struct authority *a)
{
	if (!a)
		return;
	X509_free(a->certificate);
	EVP_PKEY_free(a->key);
	free(a);
}

static void write_certificate(X509 *certificate, const char *path)
{
	FILE *out = fopen(path, "w");

	if (!out || PEM_write_X509(out, certificate) != 1 || fclose(out))
		abort();
}

void authority_write(const struct authority *a, const char *path)
{
	write_certificate(a->certificate, path);
}

void authority_sign(const struct authority *a, const struct leaf *leaf)
{
	EVP_PKEY *key = make_key();
	X509 *certificate = make_certificate(key, leaf->name, leaf->from_s, leaf->to_s);
	char names[256];
	FILE *out;

	snprintf(names, sizeof(names), "DNS:%s%s", leaf->name,
		strcmp(leaf->name, "localhost") ? "" : ",IP:127.0.0.1");
	X509_set_issuer_name(certificate, X509_get_subject_name(a->certificate));
	add_extension(certificate, a->certificate, NID_subject_alt_name, names);
	add_extension(certificate, a->certificate, NID_authority_key_identifier, "keyid");
	if (!X509_sign(certificate, a->key, EVP_sha256()))
		abort();
	write_certificate(certificate, leaf->certificate);
	out = fopen(leaf->key, "w");
	if (!out || PEM_write_PrivateKey(out, key, NULL, NULL, 0, NULL, NULL) != 1 || fclose(out))
		abort();
	X509_free(certificate);
	EVP_PKEY_free(key);
}
