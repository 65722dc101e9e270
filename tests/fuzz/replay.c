/* replay.c: runs a fuzz target over files and folders of inputs, without a fuzzer.
 *
 * The corpus holds what the fuzzer found worth keeping and every input that once failed; a target that aborts or a
 * sanitizer that complains fails the test.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(const char *path)
{
    FILE *in = fopen(path, "rb");
    if (!in)
        return -1;
    fseek(in, 0, SEEK_END);
    size_t size = (size_t)ftell(in);
    rewind(in);
    uint8_t *data = malloc(size ? size : 1);
    size_t got = data ? fread(data, 1, size, in) : 0;
    fclose(in);
    if (data && got == size)
        LLVMFuzzerTestOneInput(data, size);
    free(data);
    return got == size ? 1 : -1;
}

static int run_folder(const char *path)
{
    DIR *folder = opendir(path);
    if (!folder)
        return run_file(path);
    int n = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        char file[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(file, sizeof(file), "%s/%s", path, entry->d_name);
        if (run_file(file) < 0) {
            fprintf(stderr, "%s cannot be read\n", file);
            closedir(folder);
            return -1;
        }
        n++;
    }
    closedir(folder);
    return n;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        int n = run_folder(argv[i]);
        if (n < 0)
            return 1;
        printf("%s: %d inputs\n", argv[i], n);
        if (n == 0)
            return 1;
    }
    return argc > 1 ? 0 : 2;
}
