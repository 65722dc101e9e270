/* pack_keys.h: names of members: how the keys of a data set become names in a tar. */
#ifndef DR_PACK_PACK_KEYS_H
#define DR_PACK_PACK_KEYS_H

#include "pack/made_sample.h"

enum { DR__KEY_BYTES = 4096, DR__KEY_EXT = 64 };

/* Chooses the form of names that all samples of recipe->set can have (dr__key_form), and sets recipe->keys.  Names in
 * forms other than DR__KEY_NUMBER are unlike each other and unlike those of `present`, a packed set that is added to
 * (NULL: none). */
dr_status dr__pack_choose_keys(dr__recipe *recipe, const dr_dataset *present, dr_error *err);

/* The name of a sample's members up to their extension. */
dr_status dr__pack_stem(const dr__recipe *recipe, uint64_t id, const char *key, char stem[DR__KEY_BYTES],
                        dr_error *err);

/* The extension of the member of a field with encoded bytes or text: that of its file where it has one. */
dr_status dr__pack_ext(const dr__recipe *recipe, uint64_t id, int field, const void *data, size_t size,
                       char ext[DR__KEY_EXT], dr_error *err);

/* Do the field's bytes come from a file? */
bool dr__pack_has_file(const dr__recipe *recipe, uint64_t id, int field);

#endif
