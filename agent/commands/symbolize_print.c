/* SPDX-License-Identifier: Apache-2.0 */
/* The two output styles of llvm-symbolizer, to the letter: scripts read them. */
#include <inttypes.h>
#include <string.h>

#include "agent/commands/symbolize.h"
#include "base/utf8.h"

static const char *shown_name(const struct symbolize_style *style, const struct index_frame *frame)
{
	return style->linkage_names ? frame->linkage : frame->name;
}

static void print_frame(FILE *out, const struct symbolize_style *style,
	const struct symbolize_answer *answer, const struct index_frame *frame)
{
	fputs(shown_name(style, frame), out);
	if (answer->name_module)
		fprintf(out, " %s", answer->module);
	fprintf(out, "\n%s:%" PRIu32 ":%" PRIu32 "\n", *frame->file ? frame->file : "??",
		frame->line, frame->column);
}

/* What is printed of an answer: its frames, or the one that stands for all of them. */
struct shown {
	const struct index_frame *frames;
	size_t count;
};

static void print_lines(FILE *out, const struct symbolize_style *style,
	const struct symbolize_answer *answer, struct shown shown)
{
	if (!shown.count)
		fputs("??\n??:0:0\n", out);
	for (size_t i = 0; i < shown.count; i++)
		print_frame(out, style, answer, &shown.frames[i]);
	fputc('\n', out);
}

static bool is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/* Length of the UTF-8 sequence that stands at TEXT, 0 where there is none. */
static size_t sequence_length(const char *text, size_t left)
{
	for (size_t length = 2; length <= 4 && length <= left; length++)
		if (utf8_valid(text, length))
			return length;
	return 0;
}

static void print_json_string(FILE *out, const char *text)
{
	size_t size = strlen(text), length;

	fputc('"', out);
	for (size_t i = 0; i < size; i += length) {
		unsigned char c = (unsigned char)text[i];

		length = c < 0x80 ? 1 : sequence_length(text + i, size - i);
		if (length > 1 || is_plain(c)) {
			fwrite(text + i, 1, length, out);
		} else if (!length) {
			fputs("\\ufffd", out);
			length = 1;
		} else if (c == '"' || c == '\\') {
			fprintf(out, "\\%c", c);
		} else {
			fprintf(out, "\\u%04x", c);
		}
	}
	fputc('"', out);
}

static void print_json_frame(
	FILE *out, const struct symbolize_style *style, const struct index_frame *frame)
{
	fprintf(out, "{\"Column\":%" PRIu32 ",\"Discriminator\":0,\"FileName\":", frame->column);
	print_json_string(out, frame->file);
	fputs(",\"FunctionName\":", out);
	print_json_string(out, *frame->name ? shown_name(style, frame) : "");
	fprintf(out,
		",\"Line\":%" PRIu32 ",\"StartAddress\":\"\",\"StartFileName\":\"\",\"StartLine\":"
		"%" PRIu32 "}",
		frame->line, frame->start_line);
}

static void print_json(FILE *out, const struct symbolize_style *style, uint64_t address,
	const struct symbolize_answer *answer, struct shown shown)
{
	static const struct index_frame unknown = { .name = "", .linkage = "", .file = "" };

	fprintf(out, "{\"Address\":\"0x%" PRIx64 "\",\"ModuleName\":", address);
	print_json_string(out, answer->module);
	fputs(",\"Symbol\":[", out);
	for (size_t i = 0; i < shown.count; i++) {
		if (i)
			fputc(',', out);
		print_json_frame(out, style, &shown.frames[i]);
	}
	if (!shown.count)
		print_json_frame(out, style, &unknown);
	fputs("]}\n", out);
}

void symbolize_print(FILE *out, const struct symbolize_style *style, uint64_t address,
	const struct symbolize_answer *answer)
{
	struct shown shown = { answer->frames, answer->count };
	struct index_frame outermost;

	/* Without inlining: the function around it all, at the line of its innermost code. */
	if (style->no_inlines && answer->count > 1) {
		const struct index_frame *last = &answer->frames[answer->count - 1];

		outermost = answer->frames[0];
		outermost.name = last->name;
		outermost.linkage = last->linkage;
		outermost.start_line = last->start_line;
		shown = (struct shown){ &outermost, 1 };
	}
	if (style->json)
		print_json(out, style, address, answer, shown);
	else
		print_lines(out, style, answer, shown);
}

void symbolize_print_error(
	FILE *out, const struct symbolize_style *style, const char *module, const char *line)
{
	if (!style->json) {
		fprintf(out, "%s\n", line);
		return;
	}
	fputs("{\"Error\":{\"Message\":", out);
	print_json_string(out, "unable to parse the address");
	fputs("},\"ModuleName\":", out);
	print_json_string(out, module);
	fputs("}\n", out);
}
