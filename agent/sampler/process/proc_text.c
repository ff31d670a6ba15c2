/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/process/proc_text.h"

static unsigned int digit_value(uint8_t byte)
{
	if (byte >= '0' && byte <= '9')
		return byte - '0';
	if (byte >= 'a' && byte <= 'f')
		return byte - 'a' + 10;
	return 16;
}

uint64_t proc_text_number(struct cursor *c, unsigned int base)
{
	const uint8_t *first = c->at;
	uint64_t value = 0;

	while (cursor_left(c) > 0 && digit_value(*c->at) < base) {
		if (__builtin_mul_overflow(value, base, &value) ||
			__builtin_add_overflow(value, digit_value(*c->at), &value))
			c->bad = true;
		c->at++;
	}
	if (c->at == first)
		c->bad = true;
	return c->bad ? 0 : value;
}

void proc_text_expect(struct cursor *c, char byte)
{
	if (cursor_u8(c) != (uint8_t)byte)
		c->bad = true;
}

void proc_text_skip_blanks(struct cursor *c)
{
	while (cursor_left(c) > 0 && *c->at == ' ')
		c->at++;
}
