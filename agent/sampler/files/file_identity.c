/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/files/file_identity.h"

#include <errno.h>

#include "base/failure.h"
#include "base/foreign.h"
#include "base/host.h"

int file_identity_read(const struct build_id_reader *reader,
	const struct build_id_question *question, struct module_id *ret_id)
{
	const struct foreign *helper = foreign_current;
	struct module_id id = { 0 };
	struct file_id after;
	int err;

	if (helper)
		return helper->identity(helper->context, question, ret_id);
	err = host_file_state(question->fd, &id.file);
	if (err)
		return err;
	err = host_build_id(reader, question, &id.build_id);
	if (failure_is_transient(err))
		return err;
	if (err)
		id.build_id.size = 0;
	err = file_hash_read(question->fd, &id.content);
	if (!err)
		err = host_file_state(question->fd, &after);
	if (!err && !file_id_equal(&id.file, &after))
		err = -ESTALE;
	if (err)
		return err;
	*ret_id = id;
	return 0;
}
