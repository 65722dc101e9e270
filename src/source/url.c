/* url.c: URLs, as far as sources need them (RFC 3986). */
#include "source/url.h"

#include <ctype.h>
#include <string.h>

static bool is_unreserved(unsigned char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' || c == '.' ||
           c == '_' || c == '~';
}

static void add_encoded(dr__text *out, unsigned char c)
{
    static const char digits[] = "0123456789ABCDEF";
    const char text[3] = { '%', digits[c >> 4], digits[c & 15] };
    dr__text_add(out, text, sizeof text);
}

void dr__url_encode(dr__text *out, const char *path, size_t n, bool all)
{
    for (size_t i = 0; i < n; i++)
        if (is_unreserved((unsigned char)path[i]) || (path[i] == '/' && !all))
            dr__text_add(out, path + i, 1);
        else
            add_encoded(out, (unsigned char)path[i]);
}

void dr__url_clean(dr__text *out, const char *url, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)url[i] > ' ' && (unsigned char)url[i] < 127 && !strchr("\"<>\\^`{|}", url[i]))
            dr__text_add(out, url + i, 1);
        else
            add_encoded(out, (unsigned char)url[i]);
}

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)tolower((unsigned char)c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

size_t dr__url_decode(char *text, size_t n)
{
    size_t out = 0;
    for (size_t i = 0; i < n; i++) {
        const int high = i + 2 < n && text[i] == '%' ? hex(text[i + 1]) : -1;
        const int low = high >= 0 ? hex(text[i + 2]) : -1;
        if (low >= 0) {
            text[out++] = (char)(high * 16 + low);
            i += 2;
        } else
            text[out++] = text[i];
    }
    return out;
}

bool dr__url_split(const char *url, dr__url_parts *p)
{
    const char *colon = strstr(url, "://");
    memset(p, 0, sizeof *p);
    if (!colon || colon == url)
        return false;
    p->scheme = url;
    p->scheme_len = (size_t)(colon - url);
    const char *authority = colon + 3;
    const size_t n = strcspn(authority, "/?#");
    const char *at = memrchr(authority, '@', n);
    p->user = authority;
    p->user_len = at ? (size_t)(at - authority) : 0;
    p->host = at ? at + 1 : authority;
    p->host_len = (size_t)(authority + n - p->host);
    p->path = authority + n;
    p->path_len = strcspn(p->path, "?#");
    p->query = p->path + p->path_len;
    p->query_len = *p->query == '?' ? strcspn(p->query, "#") : 0;
    for (size_t i = 0; i < p->host_len; i++)
        if (!isalnum((unsigned char)p->host[i]) && !strchr("-.:[]_", p->host[i]))
            return false;
    return p->host_len > 0;
}
