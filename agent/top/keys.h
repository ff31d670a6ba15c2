/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Decodes terminal input into keys. Knows the sequences that VT100 and its descendants send and
 * swallows unknown ones whole. The Escape key sends the byte that starts a sequence, and only time
 * tells the two apart: the owner calls keys_expire() when no byte has followed for a moment.
 */
#include <stdbool.h>
#include <stdint.h>

enum key {
	KEY_NONE = 0,
	/* 1 to 0xff: the byte itself; UTF-8 text comes byte by byte */
	KEY_ENTER = 0x100,
	KEY_ESCAPE,
	KEY_BACKSPACE,
	KEY_UP,
	KEY_DOWN,
	KEY_PAGE_UP,
	KEY_PAGE_DOWN,
	KEY_HOME,
	KEY_END,
};

enum keys_state { KEYS_PLAIN, KEYS_ESCAPE, KEYS_CSI, KEYS_SS3 };

struct keys {
	enum keys_state state;
	unsigned int number; /* first parameter of a CSI sequence */
	unsigned int length; /* its length in bytes so far */
};

/* Returns the key that BYTE completes, or KEY_NONE. */
int keys_feed(struct keys *k, uint8_t byte);
/* True inside a sequence: call keys_expire() if nothing follows. */
bool keys_waiting(const struct keys *k);
int keys_expire(struct keys *k);
