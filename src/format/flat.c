/* flat.c: all images in a folder and below it, without labels. */
#include "format/folder.h"

static dr_status open_flat(const char *path, const dr_read_options *options, dr_dataset **out, dr_error *err)
{
    return dr__folder_open(path, options, false, out, err);
}

/* Any folder; one with images in folders below it is taken by the format `folder`. */
static int probe(const char *path)
{
    dr__source_facts facts;
    return dr__source_stat(path, &facts, NULL) == DR_OK && facts.kind == DR__SOURCE_DIR ? 10 : 0;
}

const dr_format_def dr__format_flat = {
    .name = "flat",
    .summary = "image files in a folder and below it, without labels",
    .uses = "a folder with images",
    .probe = probe,
    .open = open_flat,
};
