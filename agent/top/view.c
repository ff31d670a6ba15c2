/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/top/view.h"

#include <errno.h>
#include <string.h>

#include "agent/sampler/seam/runtime_fibers.h"
#include "agent/top/keys.h"
#include "base/cleanup.h"

enum {
	KILL_LINE = 'U' & 0x1f,
	REPAINT = 'L' & 0x1f,
};

/* Fibers have the names of their runtimes. */
static const char *const by_names[ROWS_KINDS] = {
	[ROWS_PROCESS] = "process",
	[ROWS_FUNCTION] = "function",
};

static const char *const key_names[ROWS_KEYS] = {
	[ROWS_CPU] = "cpu",
	[ROWS_TOTAL] = "total",
	[ROWS_PID] = "pid",
	[ROWS_NAME] = "name",
};

const char *view_key_name(enum rows_by by, enum rows_key key)
{
	return by == ROWS_FUNCTION && key == ROWS_CPU ? "self" : key_names[key];
}

int view_by_of_name(const char *name, enum rows_by *ret_by)
{
	if (runtime_fibers_are_called(name)) {
		*ret_by = ROWS_FIBER;
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(by_names); i++) {
		if (by_names[i] && !strcmp(name, by_names[i])) {
			*ret_by = (enum rows_by)i;
			return 0;
		}
	}
	return -EINVAL;
}

int view_key_of_name(const char *name, enum rows_key *ret_key)
{
	for (size_t i = 0; i < ARRAY_SIZE(key_names); i++) {
		if (!strcmp(name, key_names[i])) {
			*ret_key = (enum rows_key)i;
			return 0;
		}
	}
	return -EINVAL;
}

void view_show(struct view *v, enum rows_by by)
{
	v->by = by;
	v->first = 0;
	if (!rows_have_key(by, v->key)) {
		v->key = ROWS_CPU;
		v->reverse = false;
	}
}

/* ---- the filter ------------------------------------------------------------------------------ */

static void edit_begin(struct view *v)
{
	memcpy(v->before, v->filter, sizeof(v->before));
	v->editing = true;
}

/* Removes the last character with all of its UTF-8 bytes. */
static void erase_character(char *text)
{
	size_t length = strlen(text);

	while (length > 0 && ((unsigned char)text[length - 1] & 0xc0) == 0x80)
		length--;
	text[length ? length - 1 : 0] = '\0';
}

static void type_byte(struct view *v, int key)
{
	size_t length = strlen(v->filter);

	if (key < 0x20 || key > 0xff || length + 1 >= sizeof(v->filter))
		return;
	v->filter[length] = (char)key;
	v->filter[length + 1] = '\0';
}

static enum view_answer edit(struct view *v, int key)
{
	v->first = 0;
	switch (key) {
	case KEY_ENTER:
		v->editing = false;
		break;
	case KEY_ESCAPE:
		memcpy(v->filter, v->before, sizeof(v->filter));
		v->editing = false;
		break;
	case KEY_BACKSPACE:
		erase_character(v->filter);
		break;
	case KILL_LINE:
		v->filter[0] = '\0';
		break;
	default:
		type_byte(v, key);
	}
	return VIEW_REDRAW;
}

/* ---- moving and choosing --------------------------------------------------------------------- */

/* May go past the end: screen_draw() clamps it, since it knows the number of rows. */
static bool move(struct view *v, int key)
{
	size_t page = v->page ? v->page : 1;

	switch (key) {
	case KEY_UP:
	case 'k':
		v->first -= v->first ? 1 : 0;
		return true;
	case KEY_DOWN:
	case 'j':
		v->first++;
		return true;
	case KEY_PAGE_UP:
		v->first -= MIN(v->first, page);
		return true;
	case KEY_PAGE_DOWN:
		v->first += page;
		return true;
	case KEY_HOME:
		v->first = 0;
		return true;
	case KEY_END:
		v->first = SIZE_MAX / 2;
		return true;
	default:
		return false;
	}
}

static void next_order(struct view *v)
{
	do {
		v->key = (v->key + 1) % ROWS_KEYS;
	} while (!rows_have_key(v->by, v->key));
	v->reverse = false;
	v->first = 0;
}

static bool choose(struct view *v, int key)
{
	switch (key) {
	case 'p':
		view_show(v, ROWS_PROCESS);
		return true;
	case 'f':
		view_show(v, ROWS_FUNCTION);
		return true;
	case 'g':
		view_show(v, ROWS_FIBER);
		return true;
	case '\t':
		view_show(v, (v->by + 1) % ROWS_KINDS);
		return true;
	case 's':
		next_order(v);
		return true;
	case 'r':
		v->reverse = !v->reverse;
		return true;
	default:
		return false;
	}
}

enum view_answer view_key(struct view *v, int key)
{
	if (v->editing)
		return edit(v, key);
	if (v->help) {
		v->help = false;
		return VIEW_REDRAW;
	}
	if (key == 'q' || key == 'Q')
		return VIEW_QUIT;
	if (move(v, key) || choose(v, key))
		return VIEW_REDRAW;
	if (key == '/')
		edit_begin(v);
	else if (key == '?' || key == 'h')
		v->help = true;
	else if (key == ' ')
		v->paused = !v->paused;
	else if (key == KEY_ESCAPE)
		v->filter[0] = '\0';
	else if (key != REPAINT)
		return VIEW_NOTHING;
	return VIEW_REDRAW;
}
