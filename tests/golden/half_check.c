/* half_check.c: converts the float32 of standard input to float16 (argument "f16") or bfloat16 ("bf16"), for
 * comparison with NumPy and PyTorch. */
#include <stdio.h>
#include <string.h>

#include "kernel/half.h"

int main(int argc, char **argv)
{
    const int brain = argc > 1 && strcmp(argv[1], "bf16") == 0;
    float value;
    while (fread(&value, sizeof value, 1, stdin) == 1) {
        const uint16_t half = brain ? dr__f32_to_bf16(value) : dr__f32_to_f16(value);
        fwrite(&half, sizeof half, 1, stdout);
    }
    return 0;
}
