/* cache_folder.c: the user's cache folder. */
#include "base/cache_folder.h"

#include <stdio.h>
#include <stdlib.h>

bool dr__cache_folder(char *text, size_t size)
{
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = -1;
    if (xdg && xdg[0] == '/')
        n = snprintf(text, size, "%s/drapps", xdg);
    else if (home && home[0] == '/')
        n = snprintf(text, size, "%s/.cache/drapps", home);
    return n > 0 && (size_t)n < size;
}
