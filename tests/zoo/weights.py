"""Weights that a few lines of any language can repeat bit for bit: a hash of (seed, tensor name, index).

`draw(seed, name, shape)`: with h(n) the n-th output of SplitMix64 started at the FNV-1a hash of the name (UTF-8)
xor the seed, and u(n) = (h(n) >> 40) / 2^23 − 1, uniform in [−1, 1):
  no or one dimension:   1 + u(i) / 2                                     (gains, biases)
  more:                  u(i) · 2^-3 · C · R, i row-major, where the last index c has C = 4 if h(numel + c) % 8 == 0,
                         else 1, and the first index r has R = 2 if h(numel + last + r) % 4 == 0, else 1.
Every step is exact in f32, so rounding enters only where a file holds half precision (to nearest, ties to even).
The uneven columns and rows put some norms well above the directionality's threshold.
"""
import numpy as np

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def outputs(start, first, count):
    """Outputs first..first+count of SplitMix64 from state `start`."""
    with np.errstate(over="ignore"):
        z = np.uint64(start) + (np.arange(first, first + count, dtype=np.uint64) + np.uint64(1)) * GOLDEN
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def fnv1a(name):
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = (h ^ byte) * 0x100000001B3 % 2**64
    return h


def draw(seed, name, shape):
    start = fnv1a(name) ^ seed
    numel = int(np.prod(shape))
    u = (outputs(start, 0, numel) >> np.uint64(40)).astype(np.float64) / 2.0**23 - 1.0
    if len(shape) < 2:
        return (1.0 + u / 2.0).astype(np.float32).reshape(shape)
    first, last = shape[0], shape[-1]
    columns = np.where(outputs(start, numel, last) % np.uint64(8) == 0, 4.0, 1.0)
    rows = np.where(outputs(start, numel + last, first) % np.uint64(4) == 0, 2.0, 1.0)
    w = (u * 0.125).reshape(shape) * columns
    return (w * rows.reshape(first, *[1] * (len(shape) - 1))).astype(np.float32)
