/* SPDX-License-Identifier: Apache-2.0 */
/* The two output styles of llvm-symbolizer, reproduced exactly: scripts parse them. */
#include <inttypes.h>
#include <string.h>

#include "agent/commands/symbolize.h"
#include "base/buffer.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/utf8.h"

enum {
	JSON_BYTES = 64 << 20, /* limit for one answer */
	TEXT_U32_BYTES = 10, /* digits of UINT32_MAX */
};

static const char *shown_name(const struct symbolize_style *style, const struct index_frame *frame)
{
	return style->linkage_names ? frame->linkage : frame->name;
}

/* Names of foreign files may hold line breaks, which scripts would take for ours, and escapes. */
static void symbolize_print_foreign(FILE *out, const char *text)
{
	autofree char *clean = NULL;
	size_t size = strlen(text);

	if (utf8_is_clean(text, size)) {
		fwrite(text, 1, size, out);
		return;
	}
	clean = strdup(text);
	if (clean)
		utf8_clean(clean, size);
	fputs(clean ? clean : "??", out);
}

/* Writes NUMBER in front of END. Returns its start. */
static char *decimal_before(char *end, uint32_t number)
{
	do
		*--end = (char)('0' + number % 10);
	while (number /= 10);
	return end;
}

/* As fprintf() would, without a format to parse: it took a fifth of the time of an answer. */
static void print_line_and_column(FILE *out, const struct index_frame *frame)
{
	char text[2 * (1 + TEXT_U32_BYTES) + 1], *const end = text + sizeof(text), *at = end;

	*--at = '\n';
	at = decimal_before(at, frame->column);
	*--at = ':';
	at = decimal_before(at, frame->line);
	*--at = ':';
	fwrite(at, 1, (size_t)(end - at), out);
}

static void print_frame(FILE *out, const struct symbolize_style *style,
	const struct symbolize_answer *answer, const struct index_frame *frame)
{
	symbolize_print_foreign(out, shown_name(style, frame));
	if (answer->name_module) {
		fputc(' ', out);
		symbolize_print_foreign(out, answer->module);
	}
	fputc('\n', out);
	symbolize_print_foreign(out, *frame->file ? frame->file : "??");
	print_line_and_column(out, frame);
}

/* What is printed: all frames, or a single one for all of them. */
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

/* ---- JSON ----------------------------------------------------------------------------------- */

static void write_frame(
	struct json *j, const struct symbolize_style *style, const struct index_frame *frame)
{
	json_object(j, NULL);
	json_number(j, "Column", frame->column);
	json_number(j, "Discriminator", 0);
	json_text(j, "FileName", frame->file);
	json_text(j, "FunctionName", *frame->name ? shown_name(style, frame) : "");
	json_number(j, "Line", frame->line);
	json_text(j, "StartAddress", "");
	json_text(j, "StartFileName", "");
	json_number(j, "StartLine", frame->start_line);
	json_close(j);
}

static void print_document(FILE *out, struct json *j)
{
	json_finish(j);
	buffer_string(j->out, "\n");
	fwrite(j->out->bytes, 1, j->out->size, out);
}

static void symbolize_print_as_json(FILE *out, const struct symbolize_style *style,
	uint64_t address, const struct symbolize_answer *answer, struct shown shown)
{
	static const struct index_frame unknown = { .name = "", .linkage = "", .file = "" };
	autocall(buffer_deinit) struct buffer text;
	char hex[24];
	struct json j;

	snprintf(hex, sizeof(hex), "0x%" PRIx64, address);
	buffer_init(&text, JSON_BYTES);
	json_init(&j, &text, JSON_COMPACT);
	json_object(&j, NULL);
	json_text(&j, "Address", hex);
	json_text(&j, "ModuleName", answer->module);
	json_array(&j, "Symbol");
	for (size_t i = 0; i < shown.count; i++)
		write_frame(&j, style, &shown.frames[i]);
	if (!shown.count)
		write_frame(&j, style, &unknown);
	json_close(&j);
	json_close(&j);
	print_document(out, &j);
}

static void print_json_error(FILE *out, const char *module)
{
	autocall(buffer_deinit) struct buffer text;
	struct json j;

	buffer_init(&text, JSON_BYTES);
	json_init(&j, &text, JSON_COMPACT);
	json_object(&j, NULL);
	json_object(&j, "Error");
	json_text(&j, "Message", "unable to parse the address");
	json_close(&j);
	json_text(&j, "ModuleName", module);
	json_close(&j);
	print_document(out, &j);
}

/* ---- either ---------------------------------------------------------------------------------- */

void symbolize_print(FILE *out, const struct symbolize_style *style, uint64_t address,
	const struct symbolize_answer *answer)
{
	struct shown shown = { answer->frames, answer->count };
	struct index_frame outermost;

	/* Without inlining: the outermost function, at the line of the innermost frame. */
	if (style->no_inlines && answer->count > 1) {
		const struct index_frame *last = &answer->frames[answer->count - 1];

		outermost = answer->frames[0];
		outermost.name = last->name;
		outermost.linkage = last->linkage;
		outermost.start_line = last->start_line;
		shown = (struct shown){ &outermost, 1 };
	}
	if (style->json)
		symbolize_print_as_json(out, style, address, answer, shown);
	else
		print_lines(out, style, answer, shown);
}

void symbolize_print_error(
	FILE *out, const struct symbolize_style *style, const char *module, const char *line)
{
	if (style->json)
		print_json_error(out, module);
	else
		fprintf(out, "%s\n", line);
}
