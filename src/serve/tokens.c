/* tokens.c: reads tokens files and compares tokens. */
#include "serve/tokens.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/grow.h"
#include "source/file.h"

enum { MOST_BYTES = 16 << 20, MOST_RIGHTS = 4096, OTHERS = 07 };

static const char blanks[] = " \t";

/* The next word of a line; false: there is none. */
static bool next_word(const char **at, const char *end, const char **word, size_t *n)
{
    while (*at < end && strchr(blanks, **at))
        ++*at;
    *word = *at;
    while (*at < end && !strchr(blanks, **at))
        ++*at;
    *n = (size_t)(*at - *word);
    return *n > 0;
}

static bool is_printable(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] <= ' ' || (unsigned char)text[i] >= 127)
            return false;
    return true;
}

static dr_status add(dr__tokens *t, const char *const *words, const size_t *n, dr_error *err)
{
    dr__token *grown = dr__grow(t->all, &t->cap, t->n + 1, sizeof *grown);
    if (grown)
        t->all = grown;
    dr__token *token = grown ? &t->all[t->n] : NULL;
    char *rights = token ? dr__alloc_zero(n[2] + 1, 1) : NULL;
    if (!rights)
        return dr__fail(err, DR_ERR_NOMEM, "tokens: out of memory");
    *token = (dr__token){ .rights = rights };
    memcpy(token->name, words[0], n[0]);
    memcpy(token->token, words[1], n[1]);
    memcpy(rights, words[2], n[2]);
    t->n++;
    return DR_OK;
}

static dr_status take_line(dr__tokens *t, const char *line, size_t len, const char *name, size_t number, dr_error *err)
{
    const char *words[4], *at = line, *end = line + len;
    size_t n[4], n_words = 0;
    while (n_words < 4 && next_word(&at, end, &words[n_words], &n[n_words]) && *words[n_words] != '#')
        n_words++;
    if (!n_words)
        return DR_OK;
    if (n_words != 3)
        return dr__fail(err, DR_ERR_FORMAT, "%s:%zu: a line is NAME TOKEN SET[,SET...]", name, number);
    if (n[0] >= DR__TOKEN_NAME || !is_printable(words[0], n[0]) || n[2] > MOST_RIGHTS)
        return dr__fail(err, DR_ERR_FORMAT, "%s:%zu: a name has 1 to %d printable characters, rights up to %d", name,
                        number, DR__TOKEN_NAME - 1, MOST_RIGHTS);
    if (n[1] < DR__TOKEN_LEAST || n[1] >= DR__TOKEN_MOST || !is_printable(words[1], n[1]))
        return dr__fail(err, DR_ERR_FORMAT, "%s:%zu: a token has %d to %d printable characters, this one %zu", name,
                        number, DR__TOKEN_LEAST, DR__TOKEN_MOST - 1, n[1]);
    if (t->n == DR__TOKENS_MOST)
        return dr__fail(err, DR_ERR_LIMIT, "%s: more than %d tokens", name, DR__TOKENS_MOST);
    return add(t, words, n, err);
}

dr_status dr__tokens_parse(const char *text, size_t size, const char *name, dr__tokens *out, dr_error *err)
{
    dr_cursor c = dr__cursor(text, size, name);
    const char *line;
    size_t len, number = 0;
    dr_status status = DR_OK;
    *out = (dr__tokens){ 0 };
    while (status == DR_OK && dr__cursor_line(&c, &line, &len))
        status = memchr(line, 0, len) ? dr__fail(err, DR_ERR_FORMAT, "%s:%zu: a zero byte", name, number + 1)
                                      : take_line(out, line, len, name, ++number, err);
    if (status != DR_OK)
        dr__tokens_free(out);
    return status;
}

static dr_status read_open(int fd, const struct stat *st, const char *path, dr__tokens *out, dr_error *err)
{
    size_t got;
    if (st->st_mode & OTHERS)
        return dr__fail(err, DR_ERR_FORMAT,
                        "%s: others may read or write it; its mode must be 0640 or stricter, is %04o", path,
                        st->st_mode & 07777);
    if (st->st_size > MOST_BYTES)
        return dr__fail(err, DR_ERR_LIMIT, "%s: larger than %d bytes", path, MOST_BYTES);
    char *text = dr__alloc_zero((size_t)st->st_size + 1, 1);
    if (!text)
        return dr__fail(err, DR_ERR_NOMEM, "tokens: out of memory");
    dr_status status = dr__file_pread(fd, text, (size_t)st->st_size, 0, &got)
                           ? dr__fail_errno(err, DR_ERR_IO, "%s: cannot read", path)
                           : dr__tokens_parse(text, got, path, out, err);
    explicit_bzero(text, (size_t)st->st_size);
    dr__free(text);
    return status;
}

dr_status dr__tokens_read(const char *path, dr__tokens *out, dr_error *err)
{
    struct stat st;
    int fd;
    *out = (dr__tokens){ 0 };
    DR_TRY(dr__file_open(AT_FDCWD, NULL, path, &fd, &st, err));
    const dr_status status = read_open(fd, &st, path, out, err);
    close(fd);
    return status;
}

void dr__tokens_free(dr__tokens *t)
{
    for (size_t i = 0; i < t->n; i++)
        dr__free(t->all[i].rights);
    if (t->all)
        explicit_bzero(t->all, t->n * sizeof *t->all);
    dr__free(t->all);
    *t = (dr__tokens){ 0 };
}

/* Looks at all bytes, whatever they are. */
static bool is_same(const char *a, const char *b)
{
    unsigned char differ = 0;
    for (size_t i = 0; i < DR__TOKEN_MOST; i++)
        differ |= (unsigned char)(a[i] ^ b[i]);
    return !differ;
}

const dr__token *dr__tokens_find(const dr__tokens *tokens, const char *authorization)
{
    char token[DR__TOKEN_MOST] = { 0 };
    const dr__token *found = NULL;
    if (!authorization || strncasecmp(authorization, "Bearer ", 7) != 0)
        return NULL;
    const char *text = authorization + 7 + strspn(authorization + 7, " ");
    const size_t n = strlen(text);
    if (n < DR__TOKEN_LEAST || n >= DR__TOKEN_MOST)
        return NULL;
    memcpy(token, text, n);
    for (size_t i = 0; i < tokens->n; i++)
        found = is_same(token, tokens->all[i].token) ? &tokens->all[i] : found;
    explicit_bzero(token, sizeof token);
    return found;
}

bool dr__token_allows(const dr__token *token, const char *set)
{
    char pattern[MOST_RIGHTS + 1];
    for (const char *at = token->rights; *at;) {
        const size_t n = strcspn(at, ",");
        memcpy(pattern, at, n);
        pattern[n] = 0;
        const bool literal = *set == '@' || *pattern == '@';
        if (literal ? !strcmp(pattern, set) : fnmatch(pattern, set, 0) == 0)
            return true;
        at += n + (at[n] == ',');
    }
    return false;
}
