/* op_defs.h: the one list of ops, in alphabetical order. */
#ifndef DR_OP_OP_DEFS_H
#define DR_OP_OP_DEFS_H

#include "op/op.h"

#define DR_OP_ROWS(X)                                                                                                  \
    X(aug_mix)                                                                                                         \
    X(auto_augment)                                                                                                    \
    X(center_crop)                                                                                                     \
    X(clamp_bounding_boxes)                                                                                            \
    X(color_jitter)                                                                                                    \
    X(crop)                                                                                                            \
    X(cutmix)                                                                                                          \
    X(decode)                                                                                                          \
    X(decode_masks)                                                                                                    \
    X(decode_volume)                                                                                                   \
    X(gaussian_blur)                                                                                                   \
    X(grayscale)                                                                                                       \
    X(mixup)                                                                                                           \
    X(normalize)                                                                                                       \
    X(normalize_intensity)                                                                                             \
    X(pad)                                                                                                             \
    X(pad_volume)                                                                                                      \
    X(rand_augment)                                                                                                    \
    X(random_adjust_sharpness)                                                                                         \
    X(random_affine)                                                                                                   \
    X(random_apply)                                                                                                    \
    X(random_autocontrast)                                                                                             \
    X(random_balanced_crop)                                                                                            \
    X(random_brightness)                                                                                               \
    X(random_choice)                                                                                                   \
    X(random_crop)                                                                                                     \
    X(random_equalize)                                                                                                 \
    X(random_erasing)                                                                                                  \
    X(random_flip_volume)                                                                                              \
    X(random_gaussian_noise)                                                                                           \
    X(random_grayscale)                                                                                                \
    X(random_horizontal_flip)                                                                                          \
    X(random_invert)                                                                                                   \
    X(random_iou_crop)                                                                                                 \
    X(random_order)                                                                                                    \
    X(random_photometric_distort)                                                                                      \
    X(random_posterize)                                                                                                \
    X(random_resized_crop)                                                                                             \
    X(random_rotation)                                                                                                 \
    X(random_solarize)                                                                                                 \
    X(random_vertical_flip)                                                                                            \
    X(random_zoom_out)                                                                                                 \
    X(resample_volume)                                                                                                 \
    X(resize)                                                                                                          \
    X(sanitize_bounding_boxes)                                                                                         \
    X(to_dtype)                                                                                                        \
    X(trivial_augment_wide)                                                                                            \
    X(truncate_bounding_boxes)

#define DR_OP_DECLARE(name) extern const dr_op_def dr__op_##name;
DR_OP_ROWS(DR_OP_DECLARE)
#undef DR_OP_DECLARE

#endif
