/* SPDX-License-Identifier: Apache-2.0 */
/* A container runtime's answers: messages in a body that comes in pieces, and what is in them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "agent/server/metadata/container_pairs.h"
#include "agent/server/metadata/cri_decode.h"
#include "agent/server/metadata/grpc_frames.h"
#include "base/cleanup.h"
#include "tests/unit/protobuf_writer.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define POD "1111111111111111111111111111111111111111111111111111111111111111"

/* ---- frames --------------------------------------------------------------------------------- */

static void a_message_arrives_in_pieces(void **state)
{
	static const uint8_t body[] = { 0, 0, 0, 0, 3, 'a', 'b', 'c' };

	(void)state;
	for (size_t piece = 1; piece <= sizeof(body); piece++) {
		struct grpc_frames f;

		grpc_frames_init(&f, false, 3);
		for (size_t at = 0; at < sizeof(body); at += piece) {
			assert_false(at && grpc_frames_is_whole(&f));
			assert_int_equal(
				grpc_frames_take(&f, body + at, MIN(piece, sizeof(body) - at)), 0);
		}
		assert_true(grpc_frames_is_whole(&f));
		assert_int_equal(f.message.size, 3);
		assert_memory_equal(f.message.bytes, "abc", 3);
		grpc_frames_deinit(&f);
	}
}

static void assert_refused(const void *body, size_t size, int expected)
{
	struct grpc_frames f;

	grpc_frames_init(&f, false, 3);
	assert_int_equal(grpc_frames_take(&f, body, size), expected);
	assert_false(grpc_frames_is_whole(&f));
	/* For good */
	assert_int_equal(grpc_frames_take(&f, "", 0), expected);
	grpc_frames_deinit(&f);
}

static void bodies_that_are_no_single_message(void **state)
{
	struct grpc_frames f;

	(void)state;
	assert_refused("", 0, 0);
	assert_refused("\0\0\0\0", 4, 0);
	assert_refused("\0\0\0\0\2a", 6, 0);
	assert_refused("\1\0\0\0\0", 5, -EBADMSG);
	assert_refused("\0\0\0\0\4", 5, -E2BIG);
	assert_refused("\0\xff\xff\xff\xff", 5, -E2BIG);
	assert_refused("\0\0\0\0\0\0\0\0\0\0", 10, -EBADMSG);
	grpc_frames_init(&f, false, 3);
	assert_int_equal(grpc_frames_take(&f, "\0\0\0\0\0", 5), 0);
	assert_true(grpc_frames_is_whole(&f));
	grpc_frames_deinit(&f);
}

static void messages_of_a_stream_are_counted(void **state)
{
	struct grpc_frames f;

	(void)state;
	grpc_frames_init(&f, true, 3);
	assert_true(grpc_frames_is_whole(&f));
	assert_int_equal(grpc_frames_take(&f, "\0\0\0\0\1a\0\0\0\0\0\0\0\0\0\3ab", 18), 0);
	assert_int_equal(f.count, 2);
	assert_false(grpc_frames_is_whole(&f));
	assert_int_equal(grpc_frames_take(&f, "c", 1), 0);
	assert_int_equal(f.count, 3);
	assert_int_equal(f.message.size, 0);
	assert_int_equal(grpc_frames_take(&f, "\0\0\0\0\4", 5), -E2BIG);
	grpc_frames_deinit(&f);
}

/* ---- answers -------------------------------------------------------------------------------- */

static struct buffer message(void)
{
	struct buffer b;

	buffer_init(&b, 64 << 20);
	return b;
}

/* Appends a pod with a label to ANSWER. */
static void write_pod(struct buffer *answer, const char *value, size_t value_size)
{
	struct buffer pod = message(), metadata = message(), pair = message();

	pb_text(&metadata, 1, "shop");
	pb_text(&metadata, 2, "u-1");
	pb_text(&metadata, 3, "prod");
	pb_number(&metadata, 4, 7);
	pb_text(&pod, 1, POD);
	pb_message(&pod, 2, &metadata);
	pb_number(&pod, 3, 0);
	pb_text(&pair, 1, "team");
	pb_bytes(&pair, 2, value, value_size);
	pb_message(&pod, 5, &pair);
	pb_pair(&pod, 6, "note", "n");
	pb_text(&pod, 7, "runc");
	pb_text(&pod, 99, "from the future");
	pb_message(answer, 1, &pod);
}

static void write_container(struct buffer *answer)
{
	struct buffer container = message(), metadata = message(), image = message();

	pb_text(&metadata, 1, "web");
	pb_text(&image, 1, "sha256:ab");
	pb_text(&image, 18, "app:1");
	pb_text(&container, 1, A);
	pb_text(&container, 2, POD);
	pb_message(&container, 3, &metadata);
	pb_message(&container, 4, &image);
	pb_message(answer, 1, &container);
}

static struct containers *containers_of(const struct buffer *pods, const struct buffer *containers)
{
	uint64_t too_large = 0;
	struct containers *c;

	assert_int_equal(containers_create("r", &c), 0);
	assert_int_equal(
		cri_decode_containers(containers->bytes, containers->size, c, &too_large), 0);
	assert_int_equal(cri_decode_pods(pods->bytes, pods->size, c, &too_large), 0);
	assert_int_equal(too_large, 0);
	assert_int_equal(containers_finish(c, NULL, 1, 0), 0);
	return c;
}

static void answers_are_read(void **state)
{
	struct buffer pods = message(), containers = message();
	const struct container_facts *facts;
	struct containers *c;

	(void)state;
	write_pod(&pods, "a\0b", 3);
	write_container(&containers);
	pb_number(&containers, 2, 5);
	c = containers_of(&pods, &containers);
	facts = containers_find(c, A);
	assert_string_equal(facts->name, "web");
	assert_string_equal(facts->image, "app:1");
	assert_string_equal(facts->pod->name, "shop");
	assert_string_equal(facts->pod->namespace, "prod");
	assert_string_equal(facts->pod->uid, "u-1");
	/* Not taken for a shorter one */
	assert_string_equal(container_pairs_get(&facts->pod->labels, "team"), "a?b");
	assert_string_equal(container_pairs_get(&facts->pod->annotations, "note"), "n");
	containers_unref(c);
	buffer_deinit(&pods);
	buffer_deinit(&containers);
}

static void a_nul_makes_no_other_name(void **state)
{
	struct buffer answer = message(), pod = message(), metadata = message();
	uint64_t too_large = 0;
	struct containers *c;

	(void)state;
	pb_bytes(&metadata, 1, "shop\0x", 6);
	pb_text(&pod, 1, POD);
	pb_message(&pod, 2, &metadata);
	pb_message(&answer, 1, &pod);
	assert_int_equal(containers_create("r", &c), 0);
	assert_int_equal(cri_decode_pods(answer.bytes, answer.size, c, &too_large), 0);
	assert_int_equal(containers_pod_count(c), 0);
	assert_int_equal(containers_refused(c)->invalid, 1);
	containers_unref(c);
	buffer_deinit(&answer);
}

static void nonsense_is_refused(void **state)
{
	static const struct {
		const char *bytes;
		size_t size;
	} cases[] = {
		{ "\x0a", 1 }, /* no length */
		{ "\x0a\x05"
		  "abc",
			5 }, /* too short */
		{ "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11 },
		{ "\x0a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 12 },
		{ "\x0b", 1 }, /* a group */
		{ "\x0f", 1 }, /* no such wire type */
		{ "\x02\x00", 2 }, /* field 0 */
		{ "\x0a\x01\x0a", 3 }, /* an item that ends within a field */
		{ "\x0a\x02\x0a\x05", 4 },
		{ "\x11\x00", 2 },
		{ "\x15\x00", 2 },
		{ "\x10\xff", 2 },
	};
	uint64_t too_large = 0;
	struct containers *c;

	(void)state;
	assert_int_equal(containers_create("r", &c), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		if (cri_decode_pods(cases[i].bytes, cases[i].size, c, &too_large) != -EBADMSG ||
			cri_decode_containers(cases[i].bytes, cases[i].size, c, &too_large) !=
				-EBADMSG)
			fail_msg("case %zu", i);
	}
	assert_int_equal(cri_decode_pods(NULL, 0, c, &too_large), 0);
	assert_int_equal(too_large, 0);
	containers_unref(c);
}

/* Of an answer with POD, which is too large, and another one. Releases POD. */
static void only_the_next_is_taken(struct buffer *pod)
{
	struct buffer answer = message();
	uint64_t too_large = 0;
	struct containers *c;

	pb_message(&answer, 1, pod);
	write_pod(&answer, "v", 1);
	assert_int_equal(containers_create("r", &c), 0);
	assert_int_equal(cri_decode_pods(answer.bytes, answer.size, c, &too_large), 0);
	assert_int_equal(too_large, 1);
	assert_int_equal(containers_pod_count(c), 1);
	containers_unref(c);
	buffer_deinit(&answer);
}

/* Two bytes each, of which protobuf-c makes an object of its own. */
static void an_item_cannot_take_all_memory(void **state)
{
	struct buffer pod = message();

	(void)state;
	for (size_t i = 0; i < 900000; i++)
		pb_bytes(&pod, 5, "", 0);
	only_the_next_is_taken(&pod);
}

static void a_large_item_is_left_out(void **state)
{
	struct buffer pod = message();

	(void)state;
	while (pod.size < 3 << 20)
		pb_pair(&pod, 6, "k", "0123456789012345678901234567890123456789012345678901234567");
	only_the_next_is_taken(&pod);
}

static void versions(void **state)
{
	char name[CONTAINER_RUNTIME_BYTES] = "before", longest[200];
	struct buffer answer = message();

	(void)state;
	pb_text(&answer, 1, "0.1.0");
	pb_bytes(&answer, 2, "cri\0-o\x1b", 7);
	assert_int_equal(cri_decode_version(answer.bytes, answer.size, name), 0);
	assert_string_equal(name, "cri?-o?");
	assert_int_equal(cri_decode_version("\x0a", 1, name), -EBADMSG);
	memset(longest, 'x', sizeof(longest));
	answer.size = 0;
	pb_bytes(&answer, 2, longest, sizeof(longest));
	assert_int_equal(cri_decode_version(answer.bytes, answer.size, name), 0);
	assert_int_equal(strlen(name), sizeof(name) - 1);
	assert_int_equal(cri_decode_version(NULL, 0, name), 0);
	assert_string_equal(name, "");
	buffer_deinit(&answer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_arrives_in_pieces),
		cmocka_unit_test(bodies_that_are_no_single_message),
		cmocka_unit_test(messages_of_a_stream_are_counted),
		cmocka_unit_test(answers_are_read),
		cmocka_unit_test(a_nul_makes_no_other_name),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(an_item_cannot_take_all_memory),
		cmocka_unit_test(a_large_item_is_left_out),
		cmocka_unit_test(versions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
