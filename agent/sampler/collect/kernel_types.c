/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps what libbpf can need for a relocation: structs, unions and enums whose names the object
 * has too, with the members whose names occur anywhere in the object, and unnamed members, which
 * may contain such members. Pointers lose their target: that is relocated by its own struct's name.
 * Sizes and offsets are unchanged. Names are compared by hash: a superfluous one does no harm.
 */
#include "agent/sampler/collect/kernel_types.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/intern.h"
#include "base/io.h"
#include "base/map.h"

enum {
	MAX_NAMES = 65536,
	MAX_MEMBERS = 256, /* kept per struct; objects need only a few */
	MAX_DEPTH = 8, /* of nested structs and arrays */
};

struct kernel_types {
	struct btf *kernel;
	int fd; /* of a file in memory */
	char path[32];
};

struct reduction {
	const struct btf *kernel;
	struct btf *reduced;
	struct map names; /* hashes of the object's names */
};

struct member {
	const char *name;
	int type; /* id in the reduced BTF */
	uint32_t bit_off, bit_size;
};

static void destroy_btf(struct btf **btf)
{
	btf__free(*btf);
}

DEFINE_AUTO(kernel_types);

/* ---- names ---------------------------------------------------------------------------------- */

/* `name___flavor` is an alternative definition of `name`. */
static size_t plain_size(const char *name)
{
	const char *flavor = strstr(name, "___");

	return flavor && flavor != name ? (size_t)(flavor - name) : strlen(name);
}

static int kernel_types_add_name(struct reduction *r, const char *name)
{
	if (!name || !*name)
		return 0;
	return map_set(&r->names, hash_bytes(name, plain_size(name)), 1);
}

static bool is_known(const struct reduction *r, const char *name)
{
	uint64_t value;

	return name && *name && map_get(&r->names, hash_bytes(name, strlen(name)), &value);
}

static int add_names(struct reduction *r, const struct btf *object)
{
	int err = 0;

	for (uint32_t id = 1; id < btf__type_cnt(object) && !err; id++) {
		const struct btf_type *type = btf__type_by_id(object, id);

		if (!btf_is_composite(type) && !btf_is_any_enum(type))
			continue;
		err = kernel_types_add_name(r, btf__name_by_offset(object, type->name_off));
		for (uint32_t i = 0; btf_is_composite(type) && i < btf_vlen(type) && !err; i++)
			err = kernel_types_add_name(
				r, btf__name_by_offset(object, btf_members(type)[i].name_off));
	}
	return err;
}

/* ---- types: all return the id of the new type, or a negative errno --------------------------- */

static int copy_type(struct reduction *r, uint32_t id, unsigned int depth);

static const char *kernel_types_name_of(const struct reduction *r, const struct btf_type *type)
{
	return btf__name_by_offset(r->kernel, type->name_off);
}

static int copy_enum(struct reduction *r, const struct btf_type *type)
{
	int made = btf__add_enum(r->reduced, kernel_types_name_of(r, type), type->size), err = 0;

	for (uint32_t i = 0; i < btf_vlen(type) && made >= 0 && !err; i++) {
		const struct btf_enum *value = &btf_enum(type)[i];

		err = btf__add_enum_value(
			r->reduced, btf__name_by_offset(r->kernel, value->name_off), value->val);
	}
	return err ? err : made;
}

static int copy_array(struct reduction *r, const struct btf_type *type, unsigned int depth)
{
	const struct btf_array *array = btf_array(type);
	int index = copy_type(r, array->index_type, depth), element;

	if (index < 0)
		return index;
	element = copy_type(r, array->type, depth);
	return element < 0 ? element
			   : btf__add_array(r->reduced, index, element, (int)array->nelems);
}

/* Whether to keep MEMBER: an unnamed one is kept if it has members, whatever their names. */
static bool kernel_types_stays(const struct reduction *r, const struct btf_member *member)
{
	const char *name = btf__name_by_offset(r->kernel, member->name_off);
	int id = name && *name ? -1 : btf__resolve_type(r->kernel, member->type);

	return id < 0 ? is_known(r, name)
		      : btf_is_composite(btf__type_by_id(r->kernel, (uint32_t)id));
}

/* Copies the members' types before the struct: it must be the last type when members are added. */
static int copy_members(struct reduction *r, const struct btf_type *type, unsigned int depth,
	struct member members[MAX_MEMBERS])
{
	int count = 0;

	for (uint32_t i = 0; i < btf_vlen(type); i++) {
		const struct btf_member *member = &btf_members(type)[i];
		int copy;

		if (!kernel_types_stays(r, member))
			continue;
		if (count == MAX_MEMBERS)
			return -E2BIG;
		copy = copy_type(r, member->type, depth);
		if (copy < 0)
			return copy;
		members[count++] = (struct member){
			.name = btf__name_by_offset(r->kernel, member->name_off),
			.type = copy,
			.bit_off = btf_member_bit_offset(type, i),
			.bit_size = btf_member_bitfield_size(type, i),
		};
	}
	return count;
}

static int copy_struct(struct reduction *r, const struct btf_type *type, unsigned int depth)
{
	struct member members[MAX_MEMBERS];
	int count = copy_members(r, type, depth, members), made, err = 0;

	if (count < 0)
		return count;
	made = btf_is_union(type)
		       ? btf__add_union(r->reduced, kernel_types_name_of(r, type), type->size)
		       : btf__add_struct(r->reduced, kernel_types_name_of(r, type), type->size);
	for (int i = 0; i < count && made >= 0 && !err; i++)
		err = btf__add_field(r->reduced, members[i].name, members[i].type,
			members[i].bit_off, (int)members[i].bit_size);
	return err ? err : made;
}

/* Omits typedefs and qualifiers, which relocations ignore. */
static int copy_type(struct reduction *r, uint32_t id, unsigned int depth)
{
	int resolved = btf__resolve_type(r->kernel, id);
	const struct btf_type *type;

	if (resolved < 0 || depth == MAX_DEPTH)
		return resolved < 0 ? resolved : -E2BIG;
	type = btf__type_by_id(r->kernel, (uint32_t)resolved);
	switch (btf_kind(type)) {
	case BTF_KIND_INT:
		return btf__add_int(r->reduced, kernel_types_name_of(r, type), type->size,
			btf_int_encoding(type));
	case BTF_KIND_PTR:
		return btf__add_ptr(r->reduced, 0);
	case BTF_KIND_FLOAT:
		return btf__add_float(r->reduced, kernel_types_name_of(r, type), type->size);
	case BTF_KIND_ENUM:
		return copy_enum(r, type);
	case BTF_KIND_ENUM64: /* its values are not needed */
		return btf__add_enum64(
			r->reduced, kernel_types_name_of(r, type), type->size, btf_kflag(type));
	case BTF_KIND_ARRAY:
		return copy_array(r, type, depth + 1);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return copy_struct(r, type, depth + 1);
	default:
		return -EOPNOTSUPP;
	}
}

/* ---- all of it ------------------------------------------------------------------------------ */

static int copy_known(struct reduction *r)
{
	for (uint32_t id = 1; id < btf__type_cnt(r->kernel); id++) {
		const struct btf_type *type = btf__type_by_id(r->kernel, id);
		int made;

		if ((!btf_is_composite(type) && !btf_is_enum(type)) ||
			!is_known(r, kernel_types_name_of(r, type)))
			continue;
		made = copy_type(r, id, 0);
		if (made < 0)
			return made;
	}
	return 0;
}

int kernel_types_reduced(const struct btf *kernel, const struct btf *object, struct btf **ret_btf)
{
	autocall(destroy_btf) struct btf *reduced = btf__new_empty();
	struct reduction r = { .kernel = kernel, .reduced = reduced };
	int err;

	if (!reduced)
		return -ENOMEM;
	map_init(&r.names, MAX_NAMES);
	err = add_names(&r, object);
	if (!err)
		err = copy_known(&r);
	map_deinit(&r.names);
	if (!err)
		*ret_btf = take(reduced);
	return err;
}

int kernel_types_create(struct kernel_types **ret_types)
{
	autocall(auto_kernel_types_destroy) struct kernel_types *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->fd = memfd_create("kernel types", MFD_CLOEXEC);
	if (t->fd < 0)
		return -errno;
	snprintf(t->path, sizeof(t->path), "/proc/self/fd/%d", t->fd);
	t->kernel = btf__load_vmlinux_btf();
	if (!t->kernel)
		return -ENOENT;
	*ret_types = take(t);
	return 0;
}

void kernel_types_destroy(struct kernel_types *t)
{
	if (!t)
		return;
	btf__free(t->kernel);
	if (t->fd >= 0)
		close(t->fd);
	free(t);
}

const char *kernel_types_path(const struct kernel_types *t)
{
	return t ? t->path : NULL;
}

int kernel_types_reduce(struct kernel_types *t, const struct btf *object)
{
	autocall(destroy_btf) struct btf *reduced = NULL;
	const void *bytes;
	uint32_t size;
	int err = t ? kernel_types_reduced(t->kernel, object, &reduced) : 0;

	if (err || !t)
		return err;
	bytes = btf__raw_data(reduced, &size);
	if (!bytes)
		return -ENOMEM;
	if (ftruncate(t->fd, 0) || lseek(t->fd, 0, SEEK_SET))
		return -errno;
	return io_write_all(t->fd, bytes, size);
}
