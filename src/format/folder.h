/* folder.h: images below a folder, with a class per folder or without classes. */
#ifndef DR_FORMAT_FOLDER_H
#define DR_FORMAT_FOLDER_H

#include "format/dataset_internal.h"

dr_status dr__folder_open(const char *path, const dr_read_options *options, bool by_class, dr_dataset **out,
                          dr_error *err);

#endif
