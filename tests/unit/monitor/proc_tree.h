/* proc_tree.h: the files of a machine in one text: "== /proc/stat" on a line, then that file, then the next. */
#ifndef DR_TESTS_MONITOR_PROC_TREE_H
#define DR_TESTS_MONITOR_PROC_TREE_H

#include <stddef.h>

/* Makes an empty folder and puts its path into root, which has room for 64 bytes; removes it again. */
void tree_new(char *root);
void tree_remove(const char *root);

/* Writes the files below root, over those that are there: who has one open sees the new text.  Paths that lead outside
 * are left out. */
void tree_write(const char *root, const char *text, size_t size);

/* A text of trees/, with a zero byte at its end; to be freed. */
char *tree_load(const char *name, size_t *size);

#endif
