/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory as a store: each payload becomes two files, TIME-SERVICE-HASH.pb.gz and .labels (one
 * `name="value"` per line). The name derives from the content, so that sending twice writes once.
 * Nothing is ever removed here: the reader has to.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "agent/server/export/remote/remote_internal.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/io.h"

enum { SERVICE_BYTES = 64, NAME_BYTES = 160 };

static void directory_file_name(const struct payload *payload, char name[NAME_BYTES])
{
	uint64_t hash = hash_bytes(payload->pprof.bytes, payload->pprof.size);
	time_t seconds = (time_t)(payload->time_ns / 1000000000);
	const char *service = labels_get(&payload->labels, "service_name");
	char stamp[32] = "", plain[SERVICE_BYTES];
	struct tm tm;
	size_t length;

	for (size_t i = 0; i < payload->labels.count; i++) {
		const struct label *label = &payload->labels.items[i];

		hash = hash * 31 + hash_bytes(label->name, strlen(label->name));
		hash = hash * 31 + hash_bytes(label->value, strlen(label->value));
	}
	if (gmtime_r(&seconds, &tm))
		strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", &tm);
	length = (size_t)snprintf(plain, sizeof(plain), "%s", service ? service : "profile");
	for (size_t i = 0; i < MIN(length, sizeof(plain) - 1); i++) {
		if (!isalnum((unsigned char)plain[i]) && !strchr("._-", plain[i]))
			plain[i] = '_';
	}
	snprintf(name, NAME_BYTES, "%s-%s-%016llx", stamp, plain, (unsigned long long)hash);
}

static int write_labels(int dir, const char *name, const struct labels *labels)
{
	autocall(buffer_deinit) struct buffer text;

	buffer_init(&text, (size_t)LABELS_LIMIT * (LABEL_NAME_BYTES + 2 * LABEL_VALUE_BYTES));
	for (size_t i = 0; i < labels->count; i++) {
		buffer_printf(&text, "%s=\"", labels->items[i].name);
		for (const char *c = labels->items[i].value; *c; c++) {
			if (*c == '\n')
				buffer_string(&text, "\\n");
			else
				buffer_printf(&text, strchr("\"\\", *c) ? "\\%c" : "%c", *c);
		}
		buffer_string(&text, "\"\n");
	}
	return text.error ? text.error : io_replace_file(dir, name, text.bytes, text.size, 0640);
}

static int write_both(const char *directory, const struct payload *payload)
{
	autoclose int dir = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char name[NAME_BYTES], path[NAME_BYTES + 16];
	int err;

	if (dir < 0)
		return -errno;
	directory_file_name(payload, name);
	/* The labels first: a reader that sees a profile finds its labels. */
	snprintf(path, sizeof(path), "%s.labels", name);
	err = write_labels(dir, path, &payload->labels);
	if (err)
		return err;
	snprintf(path, sizeof(path), "%s.pb.gz", name);
	return io_replace_file(dir, path, payload->pprof.bytes, payload->pprof.size, 0640);
}

static void file_write(
	const char *directory, const struct payload *payload, struct remote_result *result)
{
	int err = write_both(directory, payload);
	bool wrong = err == -EACCES || err == -EPERM || err == -EROFS || err == -ENOENT ||
		     err == -ENOTDIR;

	if (!err)
		verdict_set(result, REMOTE_SENT, "written", "%s", "");
	else
		verdict_set(result, wrong ? REMOTE_DENIED : REMOTE_RETRY, "file", "%s: %s",
			directory, strerror(-err));
}

const struct protocol remote_file = { .server = "a directory", .write = file_write };
