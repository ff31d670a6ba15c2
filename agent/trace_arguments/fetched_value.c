/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/trace_arguments/fetched_value.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

enum {
	/* runtime._type.tflag: the name has a star that is not part of it. */
	GO_TYPE_EXTRA_STAR = 1 << 1,
};

/* The bytes of fetch NUMBER, and whether all, or as many as were asked for, are there. */
static const uint8_t *value_bytes(
	const struct fetched_value *v, uint8_t number, enum abi_fetch_status *ret_status)
{
	*ret_status = ABI_FETCHED_NOT;
	if (number == ARGUMENT_NO_FETCH)
		return NULL;
	*ret_status = v->fetched->status[number];
	if (*ret_status != ABI_FETCHED_OK && *ret_status != ABI_FETCHED_CUT)
		return NULL;
	return v->fetched->bytes + argument_plan_fetches(v->plan)[number].at;
}

/* A number of SIZE bytes. */
static bool value_number(
	const struct fetched_value *v, uint8_t number, size_t size, uint64_t *ret_number)
{
	enum abi_fetch_status status;
	const uint8_t *bytes = value_bytes(v, number, &status);

	*ret_number = 0;
	if (!bytes || size > sizeof(*ret_number) || !size)
		return false;
	memcpy(ret_number, bytes, size);
	return true;
}

static uint32_t value_fetch_size(const struct fetched_value *v, uint8_t number)
{
	return number == ARGUMENT_NO_FETCH ? 0 : argument_plan_fetches(v->plan)[number].size;
}

/* A number of the argument's own size, which may be a part of what was fetched. */
static bool value_part(struct fetched_value *v)
{
	size_t skip = v->argument->skip, size = v->argument->size;
	enum abi_fetch_status status;
	const uint8_t *bytes = value_bytes(v, v->argument->first, &status);

	if (!bytes || !size || size > sizeof(v->first) ||
		skip + size > value_fetch_size(v, v->argument->first))
		return false;
	memcpy(&v->first, bytes + skip, size);
	if (v->argument->bit_size)
		v->first = v->first >> v->argument->bit_off &
			   UINT64_MAX >> (64 - v->argument->bit_size);
	return true;
}

static bool value_set_text(struct fetched_value *v, uint8_t number, size_t size)
{
	enum abi_fetch_status status;
	const uint8_t *bytes = value_bytes(v, number, &status);

	v->text = (const char *)bytes;
	v->text_bytes = size;
	v->is_cut = status == ABI_FETCHED_CUT;
	return bytes != NULL;
}

/* Text of a fixed size ends at the zeros that fill it. */
static bool value_set_bytes(struct fetched_value *v)
{
	size_t skip = v->argument->skip, size = v->argument->size;

	if (skip + size > value_fetch_size(v, v->argument->first) ||
		!value_set_text(v, v->argument->first, size))
		return false;
	v->text += skip;
	while (v->text_bytes && !v->text[v->text_bytes - 1])
		v->text_bytes--;
	return true;
}

static bool value_set_c_string(struct fetched_value *v)
{
	size_t size = value_fetch_size(v, v->argument->first);

	if (value_number(v, v->argument->second, sizeof(uint64_t), &v->second) && !v->second)
		return true; /* a null pointer, without text */
	if (!value_set_text(v, v->argument->first, size))
		return false;
	v->text_bytes = strnlen(v->text, size);
	return true;
}

static bool value_set_string(struct fetched_value *v)
{
	size_t size = value_fetch_size(v, v->argument->first);

	if (!value_number(v, v->argument->second, sizeof(uint64_t), &v->second) ||
		v->second > FETCHED_LENGTH_MAX)
		return false;
	if (!value_set_text(v, v->argument->first, MIN(size, v->second)))
		return false;
	return v->is_cut || v->second <= size;
}

/*
 * The first byte's lowest bit tells the forms apart: a short text, its length in the other bits and
 * its bytes behind them; or capacity, length and address.
 */
static bool value_set_libcxx_string(struct fetched_value *v)
{
	size_t size = value_fetch_size(v, v->argument->second);
	enum abi_fetch_status status;
	const uint8_t *bytes = value_bytes(v, v->argument->first, &status);

	if (!bytes || value_fetch_size(v, v->argument->first) < LIBCXX_STRING_BYTES)
		return false;
	if (!(bytes[0] & 1)) {
		v->text = (const char *)bytes + 1;
		v->text_bytes = v->second = bytes[0] >> 1;
		return v->text_bytes < LIBCXX_STRING_BYTES - 1;
	}
	memcpy(&v->second, bytes + sizeof(uint64_t), sizeof(v->second));
	if (v->second > FETCHED_LENGTH_MAX ||
		!value_set_text(v, v->argument->second, MIN(size, v->second)))
		return false;
	return v->is_cut || v->second <= size;
}

static bool value_is_two_lengths(struct fetched_value *v)
{
	if (!value_number(v, v->argument->first, sizeof(uint64_t), &v->first))
		return false;
	if (v->argument->second == ARGUMENT_NO_FETCH)
		return v->first <= FETCHED_LENGTH_MAX;
	return value_number(v, v->argument->second, sizeof(uint64_t), &v->second) &&
	       v->first <= v->second && v->second <= FETCHED_LENGTH_MAX;
}

static bool value_set_map(struct fetched_value *v)
{
	if (!value_number(v, v->argument->first, sizeof(uint64_t), &v->first))
		return false;
	return !v->first || (value_number(v, v->argument->second, sizeof(uint64_t), &v->second) &&
				    v->second <= FETCHED_LENGTH_MAX);
}

/*
 * The name in the runtime's encoding (internal/abi.Name): a byte of flags, its length, its bytes.
 * The length is a varint since Go 1.17, and was two bytes, the high one first.
 */
static bool value_set_type_name(struct fetched_value *v, uint8_t number)
{
	size_t size = value_fetch_size(v, number), at = 2, length;
	enum abi_fetch_status status;
	const uint8_t *bytes = value_bytes(v, number, &status);
	bool has_star;

	if (!bytes || size < 5)
		return false;
	has_star = bytes[0] & GO_TYPE_EXTRA_STAR;
	if (v->plan->flags & ARGUMENT_PLAN_OLD_GO_NAMES) {
		length = (size_t)bytes[at] << 8 | bytes[at + 1];
		at += 2;
	} else {
		length = bytes[at++];
		if (length & 0x80) {
			length = (length & 0x7f) | (size_t)bytes[at++] << 7;
			if (length >> 14)
				return false;
		}
	}
	if (length <= has_star)
		return false;
	at += has_star;
	length -= has_star;
	v->text = (const char *)bytes + at;
	v->text_bytes = MIN(length, size - at);
	v->is_cut = length > size - at;
	return true;
}

static bool value_set_interface(struct fetched_value *v)
{
	if (!value_number(v, v->argument->first, sizeof(uint64_t), &v->first))
		return false;
	return !v->first || value_set_type_name(v, v->argument->second);
}

static bool value_set(struct fetched_value *v)
{
	const struct argument *argument = v->argument;

	switch (argument->kind) {
	case ARGUMENT_SIGNED:
	case ARGUMENT_UNSIGNED:
	case ARGUMENT_FLOAT:
	case ARGUMENT_BOOL:
	case ARGUMENT_ENUM:
	case ARGUMENT_CHARACTER:
		return value_part(v);
	case ARGUMENT_POINTER:
	case ARGUMENT_STRUCT_POINTER:
		return value_number(v, argument->first, sizeof(uint64_t), &v->first);
	case ARGUMENT_BYTES:
		return value_set_bytes(v);
	case ARGUMENT_C_STRING:
		return value_set_c_string(v);
	case ARGUMENT_STRING:
		return value_set_string(v);
	case ARGUMENT_LIBCXX_STRING:
		return value_set_libcxx_string(v);
	case ARGUMENT_SLICE:
		return value_is_two_lengths(v);
	case ARGUMENT_MAP:
		return value_set_map(v);
	case ARGUMENT_INTERFACE:
		return value_set_interface(v);
	}
	return argument->kind == ARGUMENT_STRUCT || argument->kind == ARGUMENT_ARRAY;
}

void fetched_value_of(const struct argument_plan *plan, const struct abi_fetched *fetched,
	const struct argument *argument, struct fetched_value *ret_value)
{
	*ret_value = (struct fetched_value){
		.plan = plan,
		.fetched = fetched,
		.argument = argument,
	};
	if (!value_set(ret_value))
		return;
	ret_value->kind = argument->kind;
	if (argument->kind == ARGUMENT_LIBCXX_STRING)
		ret_value->kind = ARGUMENT_STRING;
}

int64_t fetched_value_signed(const struct fetched_value *v)
{
	unsigned int bits = v->argument->bit_size ? v->argument->bit_size : 8 * v->argument->size;
	unsigned int unused = 64 - bits;

	return (int64_t)(v->first << unused) >> unused;
}

double fetched_value_float(const struct fetched_value *v)
{
	uint32_t low = (uint32_t)v->first;
	double number;
	float narrow;

	if (v->argument->size == sizeof(narrow)) {
		memcpy(&narrow, &low, sizeof(narrow));
		return (double)narrow;
	}
	memcpy(&number, &v->first, sizeof(number));
	return number;
}

const char *fetched_value_enumerator(const struct fetched_value *v, size_t *ret_size)
{
	const char *at = argument_plan_name(v->plan, v->argument->enumerators);

	while (*at) {
		char *name;
		uint64_t value = strtoull(at, &name, 16);

		if (*name != '=')
			return NULL;
		*ret_size = strcspn(++name, ",");
		if (value == v->first && *ret_size)
			return name;
		at = name + *ret_size;
		at += *at == ',';
	}
	return NULL;
}
