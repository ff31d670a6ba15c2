/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where DWARF says a parameter is at the first instruction, it is there. Three things it does not
 * say.
 *
 * Compilers that do not optimize describe the place in the frame to which the prologue will copy
 * the parameter, for the whole function. Such code keeps to the platform's calling convention (Rust
 * does so for numbers and addresses), so the place follows from the types, as long as every type's
 * passing is certain and nothing that DWARF does say contradicts.
 *
 * Where Go's results are at a return is in no location list; Go's own convention says it. (Go 1.17
 * does not even say which there are.)
 *
 * A C function's result is where the platform's convention has it, if the compiler has kept to it
 * (compiler.h).
 */
#include "symbolizer/indexer/arguments/function.h"

#include <dwarf.h>
#include <stdio.h>
#include <string.h>

#include "symbolizer/arguments/registers.h"
#include "symbolizer/indexer/arguments/c_call.h"
#include "symbolizer/indexer/arguments/go_call.h"

enum {
	MAX_CHILDREN = 4096,
	DW_LANG_GO = 0x16,
	DW_LANG_RUST = 0x1c,
	/* Languages that are younger than DWARF 5 (dwarfstd.org, Language Codes). */
	DW_LANG_CPP_17 = 0x2a,
	DW_LANG_CPP_20 = 0x2b,
	DW_LANG_C_17 = 0x2c,
	DW_LANG_CPP_23 = 0x3a,
	DW_LANG_C_23 = 0x3e,
	GO_1_17 = 17,
};

/* ---- the unit ------------------------------------------------------------------------------- */

static bool function_is_cxx(Dwarf_Die *unit)
{
	switch (dwarf_srclang(unit)) {
	case DW_LANG_C:
	case DW_LANG_C89:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case DW_LANG_C_17:
	case DW_LANG_C_23:
		return false;
	}
	return true;
}

static enum function_language function_language_of(Dwarf_Die *unit)
{
	switch (dwarf_srclang(unit)) {
	case DW_LANG_GO:
		return FUNCTION_GO;
	case DW_LANG_RUST:
		return FUNCTION_RUST;
	case DW_LANG_C:
	case DW_LANG_C89:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
	case DW_LANG_CPP_17:
	case DW_LANG_CPP_20:
	case DW_LANG_CPP_23:
	case DW_LANG_C_17:
	case DW_LANG_C_23:
		return FUNCTION_C;
	}
	return FUNCTION_OTHER;
}

/* `Go cmd/compile go1.21.13; regabi` */
void function_file_set_unit(struct function_file *file, Dwarf_Die *unit)
{
	Dwarf_Attribute attribute;
	const char *producer = NULL, *version;
	unsigned int minor = 0;

	file->language = function_language_of(unit);
	file->is_cxx = function_is_cxx(unit);
	compiler_of_unit(unit, &file->compiler);
	if (file->language != FUNCTION_GO)
		return;
	if (dwarf_attr(unit, DW_AT_producer, &attribute))
		producer = dwarf_formstring(&attribute);
	version = producer ? strstr(producer, "go1.") : NULL;
	if (!version || sscanf(version, "go1.%u", &minor) != 1)
		file->language = FUNCTION_OTHER; /* nobody knows how it calls */
	file->go_in_registers = producer && strstr(producer, "regabi");
	file->go_places = minor > GO_1_17;
	file->go_results = minor != GO_1_17;
	file->old_go_names = minor < GO_1_17;
}

/* ---- parameters ----------------------------------------------------------------------------- */

struct parameter {
	Dwarf_Die die;
	struct type type;
	bool has_type;
	struct place place;
	enum place_home home; /* DWARF says only where it will be copied to */
	bool is_result;
};

enum { MAX_PARAMETERS = 48 /* with results */ };

struct parameters {
	struct parameter items[MAX_PARAMETERS];
	size_t count;
};

static bool function_has_flag(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;
	bool flag = false;

	return dwarf_attr_integrate(die, name, &attribute) && !dwarf_formflag(&attribute, &flag) &&
	       flag;
}

/* libdw gives no operations of a frame base that is a block. */
static enum place_base function_base(Dwarf_Die *function)
{
	Dwarf_Attribute attribute;
	Dwarf_Block block;

	if (!dwarf_attr_integrate(function, DW_AT_frame_base, &attribute) ||
		dwarf_formblock(&attribute, &block) || block.length != 1)
		return PLACE_BASE_UNKNOWN;
	if (block.data[0] == DW_OP_call_frame_cfa)
		return PLACE_BASE_CFA;
	return block.data[0] == DW_OP_reg0 + REGISTER_DWARF_FRAME_POINTER ? PLACE_BASE_FRAME_POINTER
									  : PLACE_BASE_UNKNOWN;
}

/* Go lists the result of a function that defers calls twice, under the same name. */
static bool function_has_parameter(const struct parameters *p, Dwarf_Die *die)
{
	const char *name = dwarf_diename(die);

	for (size_t i = 0; i < p->count && name; i++) {
		const char *known = dwarf_diename((Dwarf_Die *)&p->items[i].die);

		if (known && !strcmp(known, name) && !strncmp(name, "~r", 2))
			return true;
	}
	return false;
}

static void function_add_parameter(
	struct parameters *p, Dwarf_Die *die, uint64_t entry, enum place_base base)
{
	struct parameter *item;

	if (function_has_parameter(p, die))
		return;
	item = &p->items[p->count++];
	*item = (struct parameter){ .die = *die };
	item->has_type = type_of(die, &item->type);
	item->is_result = function_has_flag(die, DW_AT_variable_parameter);
	if (item->has_type)
		place_at_entry(die, entry, item->type.size, base, &item->place, &item->home);
}

static bool function_origin(Dwarf_Die *die, Dwarf_Die *ret_origin)
{
	Dwarf_Attribute attribute;

	return dwarf_attr(die, DW_AT_abstract_origin, &attribute) &&
	       dwarf_formref_die(&attribute, ret_origin);
}

/* Moves to ORDERED the one that was declared as DECLARED, or one that is nowhere. */
static void function_take_declared(
	struct parameters *p, Dwarf_Die *declared, bool *taken, struct parameters *ordered)
{
	struct parameter *item = &ordered->items[ordered->count];
	Dwarf_Die origin;

	for (size_t i = 0; i < p->count; i++) {
		if (taken[i] || !function_origin(&p->items[i].die, &origin) ||
			dwarf_dieoffset(&origin) != dwarf_dieoffset(declared))
			continue;
		taken[i] = true;
		ordered->items[ordered->count++] = p->items[i];
		return;
	}
	*item = (struct parameter){ .die = *declared };
	item->has_type = type_of(declared, &item->type);
	ordered->count++;
}

/* A copy of a function lists the parameters that GCC has removed last, or not at all. */
static void function_order(Dwarf_Die *function, struct parameters *p)
{
	bool taken[MAX_PARAMETERS] = { false };
	struct parameters ordered = { .count = 0 };
	Dwarf_Die origin, child;

	if (!function_origin(function, &origin) || dwarf_child(&origin, &child))
		return;
	for (int i = 0; i < MAX_CHILDREN && ordered.count < MAX_PARAMETERS; i++) {
		if (dwarf_tag(&child) == DW_TAG_formal_parameter)
			function_take_declared(p, &child, taken, &ordered);
		if (dwarf_siblingof(&child, &child))
			break;
	}
	for (size_t i = 0; i < p->count && ordered.count < MAX_PARAMETERS; i++)
		if (!taken[i])
			ordered.items[ordered.count++] = p->items[i];
	*p = ordered;
}

/* Returns false if there are more than MAX_PARAMETERS. */
static bool function_parameters(Dwarf_Die *function, uint64_t entry, struct parameters *p)
{
	enum place_base base = function_base(function);
	Dwarf_Die child;

	p->count = 0;
	if (dwarf_child(function, &child))
		return true;
	for (int i = 0; i < MAX_CHILDREN; i++) {
		if (dwarf_tag(&child) == DW_TAG_formal_parameter) {
			if (p->count == MAX_PARAMETERS)
				return false;
			function_add_parameter(p, &child, entry, base);
		}
		if (dwarf_siblingof(&child, &child))
			break;
	}
	return true;
}

/* Whether a part of a value that DWARF places is elsewhere by the convention. */
static bool function_contradicts(const struct place *dwarf, const struct place *convention)
{
	for (size_t i = 0; i < dwarf->count; i++) {
		const struct place_piece *one = &dwarf->pieces[i];

		for (size_t k = 0; k < convention->count; k++) {
			const struct place_piece *other = &convention->pieces[k];

			if (one->off == other->off &&
				(one->in_memory != other->in_memory ||
					one->in_register != other->in_register))
				return true;
		}
	}
	return false;
}

/* Rust passes structs in ways of its own. */
static enum c_passing function_passing(const struct function_file *file, struct type *type)
{
	if (file->language == FUNCTION_RUST)
		return C_PASSED_SOMEHOW;
	return c_passing_of(type, file->is_cxx ? C_PASSED_BY_MEMBERS : C_PASSED_AS_VALUE);
}

/* What DWARF says of ITEM's place tells how a struct is passed. */
static enum c_passing function_parameter_passing(
	const struct function_file *file, struct parameter *item)
{
	const struct place_piece *piece = item->place.pieces;

	if (file->language == FUNCTION_RUST)
		return C_PASSED_SOMEHOW;
	if (item->home == PLACE_HOME_OF_ADDRESS ||
		(item->place.count && piece->in_memory && piece->address.origin != ABI_FETCH_SP))
		return C_PASSED_BY_ADDRESS;
	/* GCC would say that the home is the address's. */
	if (item->place.count || (item->home && file->compiler.kind == COMPILER_GNU))
		return C_PASSED_AS_VALUE;
	return function_passing(file, &item->type);
}

/* Where DWARF names homes: the platform's convention, if what DWARF does say agrees with it. */
static void function_apply_convention(
	const struct function_file *file, Dwarf_Die *function, struct parameters *p)
{
	struct place places[MAX_PARAMETERS];
	struct c_call call;
	struct type result;
	bool returns = dwarf_hasattr_integrate(function, DW_AT_type);
	bool is_known = returns && type_of(function, &result);

	c_call_begin(&call, is_known ? &result : NULL,
		is_known ? function_passing(file, &result) : C_PASSED_SOMEHOW);
	call.is_unknown |= returns != is_known;
	for (size_t i = 0; i < p->count; i++) {
		struct parameter *item = &p->items[i];

		/* One without any place may have been removed. */
		if (!item->has_type || (!item->place.count && !item->home))
			call.is_unknown = true;
		c_call_place(&call, item->has_type ? &item->type : NULL,
			function_parameter_passing(file, item), &places[i]);
		if (item->place.count && places[i].count &&
			function_contradicts(&item->place, &places[i]))
			return;
	}
	for (size_t i = 0; i < p->count; i++)
		if (p->items[i].home)
			p->items[i].place = places[i];
}

/*
 * Go's own convention places what DWARF leaves out. Before registers, DWARF is wrong about the
 * parts of strings (Go 1.16), and since then it is the check: generic functions have a parameter
 * that nobody has declared.
 */
static void function_apply_go(const struct function_file *file, struct parameters *p)
{
	struct go_call call = { .in_registers = file->go_in_registers };
	struct place places[MAX_PARAMETERS];
	bool is_known = true;

	for (size_t i = 0; i < p->count && is_known; i++) {
		if (p->items[i].is_result)
			continue;
		is_known = p->items[i].has_type;
		if (!is_known)
			break;
		go_call_place(&call, &p->items[i].type, &places[i]);
		if (file->go_places && function_contradicts(&p->items[i].place, &places[i]))
			is_known = false;
	}
	for (size_t i = 0; i < p->count; i++) {
		if (is_known && !p->items[i].is_result)
			p->items[i].place = places[i];
		else if (!file->go_places)
			p->items[i].place.count = 0;
	}
}

static void function_begin(const struct function_file *file, uint64_t entry, struct values *v)
{
	uint32_t flags = 0;

	v->is_go = file->language == FUNCTION_GO;
	v->types = file->types;
	v->types_end = file->types_end;
	v->entry = entry;
	if (v->is_go)
		flags = ARGUMENT_PLAN_GO | (file->old_go_names ? ARGUMENT_PLAN_OLD_GO_NAMES : 0);
	argument_builder_init(&v->builder, flags);
}

static void function_add_value(struct values *v, struct parameter *item, const struct place *place)
{
	const char *name = dwarf_diename(&item->die);

	/* Go's results without a name are called ~r0 (~r2 until 1.17). */
	values_add(v, name && *name != '~' ? name : "", &item->die,
		item->has_type ? &item->type : NULL, place);
}

void function_entry(const struct function_file *file, struct function *f, struct values *v)
{
	struct parameters p;

	function_begin(file, f->entry, v);
	if (!function_parameters(&f->die, f->entry, &p))
		return;
	if (file->language != FUNCTION_GO)
		function_order(&f->die, &p);
	if ((file->language == FUNCTION_C || file->language == FUNCTION_RUST) &&
		compiler_keeps_parameters(&file->compiler, &f->die, f->symbol))
		function_apply_convention(file, &f->die, &p);
	if (file->language == FUNCTION_GO)
		function_apply_go(file, &p);
	for (size_t i = 0; i < p.count; i++)
		if (!p.items[i].is_result)
			function_add_value(v, &p.items[i], &p.items[i].place);
}

/* ---- results -------------------------------------------------------------------------------- */

/* Each parameter's type counts, since results on the stack come behind the parameters there. */
static void function_go_results(
	const struct function_file *file, struct parameters *p, struct values *v)
{
	struct go_call call = { .in_registers = file->go_in_registers };
	struct place place;

	for (size_t i = 0; i < p->count; i++) {
		if (!p->items[i].has_type)
			return;
		if (!p->items[i].is_result)
			go_call_place(&call, &p->items[i].type, &place);
	}
	go_call_begin_results(&call);
	for (size_t i = 0; i < p->count; i++) {
		if (!p->items[i].is_result)
			continue;
		go_call_place(&call, &p->items[i].type, &place);
		function_add_value(v, &p->items[i], &place);
	}
}

void function_results(const struct function_file *file, struct function *f, struct values *v)
{
	struct parameters p;
	struct place place;
	struct type type;

	function_begin(file, f->entry, v);
	if (file->language == FUNCTION_GO) {
		if (file->go_results && function_parameters(&f->die, f->entry, &p))
			function_go_results(file, &p, v);
		return;
	}
	if (!type_of(&f->die, &type))
		return;
	place = (struct place){ .count = 0 };
	if (file->language != FUNCTION_OTHER &&
		compiler_keeps_result(&file->compiler, &f->die, f->symbol))
		c_call_result(&type, function_passing(file, &type), &place);
	values_add(v, "", &f->die, &type, &place);
}
