/* adam.h: Adam (Kingma and Ba, 2015), and the norm of gradients. */
#ifndef DR_RL_ADAM_H
#define DR_RL_ADAM_H

#include <stddef.h>
#include <stdint.h>

/* Of n parameters; borrows its arrays, 0 at first. */
typedef struct dr__rl_adam {
    size_t n;
    float *first, *second; /* moments */
    uint64_t steps;
} dr__rl_adam;

/* beta 0.9 and 0.999, epsilon 1e-5. */
void dr__rl_adam_step(dr__rl_adam *adam, float *params, const float *grads, double rate);

/* Scales the gradients so that their norm is at most `most` (0: leaves them); returns the norm before. */
double dr__rl_clip_norm(float *grads, size_t n, double most);

#endif
