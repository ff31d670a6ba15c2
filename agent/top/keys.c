/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/top/keys.h"

enum {
	ESCAPE_BYTE = 0x1b,
	MAX_SEQUENCE_BYTES = 32,
	MAX_NUMBER = 1000,
};

static int plain(struct keys *k, uint8_t byte)
{
	switch (byte) {
	case ESCAPE_BYTE:
		*k = (struct keys){ .state = KEYS_ESCAPE };
		return KEY_NONE;
	case '\r':
	case '\n':
		return KEY_ENTER;
	case 0x08:
	case 0x7f:
		return KEY_BACKSPACE;
	default:
		return byte;
	}
}

static int after_escape(struct keys *k, uint8_t byte)
{
	if (byte == ESCAPE_BYTE)
		return KEY_ESCAPE;
	k->state = byte == '[' ? KEYS_CSI : byte == 'O' ? KEYS_SS3 : KEYS_PLAIN;
	return KEY_NONE;
}

static int key_of_letter(uint8_t letter)
{
	switch (letter) {
	case 'A':
		return KEY_UP;
	case 'B':
		return KEY_DOWN;
	case 'H':
		return KEY_HOME;
	case 'F':
		return KEY_END;
	default:
		return KEY_NONE;
	}
}

static int key_of_number(unsigned int number)
{
	switch (number) {
	case 1:
	case 7:
		return KEY_HOME;
	case 4:
	case 8:
		return KEY_END;
	case 5:
		return KEY_PAGE_UP;
	case 6:
		return KEY_PAGE_DOWN;
	default:
		return KEY_NONE;
	}
}

/* ECMA-48: parameters and intermediates below 0x40, then one final byte. */
static int in_csi(struct keys *k, uint8_t byte)
{
	unsigned int number = k->number;

	if (byte >= '0' && byte <= '9' && number < MAX_NUMBER)
		k->number = number * 10 + byte - '0';
	if (byte < 0x40 && ++k->length < MAX_SEQUENCE_BYTES)
		return KEY_NONE;
	*k = (struct keys){ 0 };
	return byte == '~' ? key_of_number(number) : key_of_letter(byte);
}

int keys_feed(struct keys *k, uint8_t byte)
{
	switch (k->state) {
	case KEYS_ESCAPE:
		return after_escape(k, byte);
	case KEYS_CSI:
		return in_csi(k, byte);
	case KEYS_SS3:
		*k = (struct keys){ 0 };
		return key_of_letter(byte);
	case KEYS_PLAIN:
		break;
	}
	return plain(k, byte);
}

bool keys_waiting(const struct keys *k)
{
	return k->state != KEYS_PLAIN;
}

int keys_expire(struct keys *k)
{
	int key = k->state == KEYS_ESCAPE ? KEY_ESCAPE : KEY_NONE;

	*k = (struct keys){ 0 };
	return key;
}
