/* tokens.h: who may ask a server for which sets.
 *
 * A tokens file has one client a line: a name, a token, and what it may read: names of sets or shell patterns, with
 * commas between them, and @metrics for the metrics.  # begins a comment.
 *
 *     # name   token                              rights
 *     alice    4f1c9d0be2a04c55b1f7d0a6c4f0a9b2   imagenet,coco-*
 *     ops      8d2e6f70a1b94d0f9a3c5e7b1d2f4a6c   *,@metrics
 */
#ifndef DR_SERVE_TOKENS_H
#define DR_SERVE_TOKENS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

enum { DR__TOKEN_NAME = 64, DR__TOKEN_LEAST = 16, DR__TOKEN_MOST = 256, DR__TOKENS_MOST = 10000 };

typedef struct dr__token {
    char name[DR__TOKEN_NAME];
    char token[DR__TOKEN_MOST]; /* filled up with zeros */
    char *rights;
} dr__token;

typedef struct dr__tokens {
    dr__token *all;
    size_t n, cap;
} dr__tokens;

/* Reads a tokens file.  The caller frees *out, which a failure leaves empty.
 *
 * @return DR_OK; DR_ERR_FORMAT: a line is wrong, or others than its owner and group may read the file;
 * DR_ERR_NOT_FOUND, DR_ERR_IO, DR_ERR_LIMIT, DR_ERR_NOMEM. */
dr_status dr__tokens_read(const char *path, dr__tokens *out, dr_error *err);
dr_status dr__tokens_parse(const char *text, size_t size, const char *name, dr__tokens *out, dr_error *err);
void dr__tokens_free(dr__tokens *tokens);

/* The client of an Authorization header ("Bearer TOKEN"); NULL: none.  Takes as long for a wrong token as for a right
 * one, so that it cannot be guessed piece by piece. */
const dr__token *dr__tokens_find(const dr__tokens *tokens, const char *authorization);

/* Whether a client may read a set (or "@metrics"). */
bool dr__token_allows(const dr__token *token, const char *set);

#endif
