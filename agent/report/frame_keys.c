/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/report/frame_keys.h"

static size_t frame_key_of_runtime(
	uint32_t process, const struct profile_frame *frame, struct frame_key *ret_key)
{
	*ret_key = (struct frame_key){
		.address = frame->address,
		.module = frame->module,
		.context = process,
		.position = frame->flags,
	};
	return sizeof(*ret_key);
}

static uint32_t frame_key_context(
	uint32_t anon_module, uint32_t process, const struct profile_frame *frame)
{
	if (profile_frame_kind(frame) == PROFILE_KIND_KERNEL)
		return profile_frame_tenant(frame);
	if (frame->module == anon_module)
		return process;
	return frame->flags & PROFILE_FRAME_FUNCTION;
}

size_t frame_key(uint32_t anon_module, uint32_t process, const struct profile_frame *frame,
	struct frame_key *ret_key)
{
	if (profile_frame_is_runtime(frame))
		return frame_key_of_runtime(process, frame, ret_key);
	ret_key->address = profile_frame_call(frame);
	ret_key->module = frame->module;
	ret_key->context = frame_key_context(anon_module, process, frame);
	return offsetof(struct frame_key, position);
}

bool frame_is_private(uint32_t anon_module, const struct profile_frame *frame)
{
	return profile_frame_is_runtime(frame) || frame->module == anon_module;
}
