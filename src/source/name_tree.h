/* name_tree.h: paths of the objects below a directory, as a manifest or a store lists them, and the directories that
 * they imply. */
#ifndef DR_SOURCE_NAME_TREE_H
#define DR_SOURCE_NAME_TREE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"
#include "source/source.h"

typedef struct dr__name_tree {
    dr__text block; /* all paths, each with its 0 */
    size_t *begin;  /* of each path in the block; sorted once they are finished */
    size_t n, cap;
} dr__name_tree;

/* Adds a path of components that are separated by single slashes; false: it has none such, or "." or "..".  Then, and
 * where memory is short (block.failed), nothing is added. */
bool dr__name_tree_add(dr__name_tree *tree, const char *path, size_t size);

/* Ends the adding: sorts, and drops what is there twice. */
void dr__name_tree_finish(dr__name_tree *tree);

/* Hands over what lies directly below `path` ("": the top).  DR_ERR_NOT_FOUND where nothing does. */
dr_status dr__name_tree_list(const dr__name_tree *tree, const char *path, dr__source_lister *lister, dr_error *err);

void dr__name_tree_free(dr__name_tree *tree);

#endif
