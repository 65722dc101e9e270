"""Photographs of nothing: JPEG files that take as long to decode as others of their size, made from a seed."""

import os

CLASSES, EACH, WIDTH, HEIGHT = 8, 64, 500, 375


def make(folder, classes=CLASSES, each=EACH, size=(WIDTH, HEIGHT), seed=0):
    """Fills folder/images with `each` files in each of `classes` folders; returns its path."""
    import numpy as np
    from PIL import Image

    rng, root = np.random.default_rng(seed), os.path.join(folder, "images")
    for label in range(classes):
        os.makedirs(os.path.join(root, f"class{label}"))
        for k in range(each):
            coarse = rng.integers(0, 255, (12, 16, 3), np.uint8)  # shapes,
            picture = np.asarray(Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC), np.int16)
            picture = picture + rng.normal(0, 12, picture.shape) + 4 * label  # and texture, which costs bits
            image = Image.fromarray(np.clip(picture, 0, 255).astype(np.uint8))
            image.save(os.path.join(root, f"class{label}", f"{k:04d}.jpg"), quality=90)
    return root
