/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Bytes from a terminal → keys. Knows the sequences that VT100 and its descendants send; others are
 * swallowed whole. The Escape key sends the byte that sequences begin with: only time tells them
 * apart, so the owner asks keys_expire() when nothing has followed for a moment.
 */
#include <stdbool.h>
#include <stdint.h>

enum key {
	KEY_NONE = 0,
	/* bytes stand for themselves: text, UTF-8 included, 1 to 0xff */
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
	unsigned int length; /* bytes of it so far */
};

/* The key that BYTE completes, or KEY_NONE. */
int keys_feed(struct keys *k, uint8_t byte);
/* A sequence has begun: call keys_expire() when nothing follows. */
bool keys_waiting(const struct keys *k);
int keys_expire(struct keys *k);
