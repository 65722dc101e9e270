/* format_table.c: all formats. */
#include "format/dataset_internal.h"

const dr_format_def *const dr__format_table[] = {
    &dr__format_drapps, &dr__format_flat, &dr__format_folder, &dr__format_list, &dr__format_tar, NULL,
};
