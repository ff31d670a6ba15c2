/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sampler/collect/mapped_files.h"

static struct mapped_file *mapped_files_place_of(
	struct mapped_files *files, const struct collect_mmap *mmap)
{
	return &files->items[mmap->tid & (MAPPED_FILES - 1)];
}

void mapped_files_keep(struct mapped_files *files, const struct collect_mmap *mmap)
{
	*mapped_files_place_of(files, mmap) = (struct mapped_file){
		.tgid = mmap->tgid,
		.tid = mmap->tid,
		.start = mmap->start,
		.length = mmap->length,
		.file_off = mmap->file_off,
		.device = mmap->device,
		.inode = mmap->inode,
		.generation = mmap->generation,
	};
}

void mapped_files_complete(struct mapped_files *files, struct collect_mmap *mmap)
{
	struct mapped_file *file = mapped_files_place_of(files, mmap);

	if (file->tid != mmap->tid || file->tgid != mmap->tgid || file->start != mmap->start ||
		file->length != mmap->length || file->file_off != mmap->file_off)
		return;
	mmap->device = file->device;
	mmap->inode = file->inode;
	mmap->generation = file->generation;
	*file = (struct mapped_file){ 0 };
}
