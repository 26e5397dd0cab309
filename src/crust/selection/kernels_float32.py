"""Fast passes over all pairs in float32: what they find is close to the truth, never taken for it.

Every distance from here has a proven error bound (`distances.py`); whatever the bound leaves open is settled with the
exact distances of `kernels_exact.py`.
"""

import math

import numpy as np
from numba import njit

BLOCK = 512  # columns handled at once: a few rows of them fit the first-level cache
SUM_ERROR = 64 * 2.0**-24  # relative error of sums that begin in float32


def fast_kernel(function):
    """Compile without the GIL, keep the machine code on disk, add in any order."""
    return njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz", "arcp", "nnan"})(
        function
    )


@fast_kernel
def differences_tile(yt, rows, start, stop, root, scale, out):
    """float32 distances from differences: best for few dimensions."""
    dims = yt.shape[0]
    for left in range(start, stop, BLOCK):
        right = min(stop, left + BLOCK)
        width = right - left
        for r in range(rows.shape[0]):
            i = rows[r]
            sums = out[r, left - start : right - start]
            c = 0
            if dims >= 8:  # the first eight need no sums to be loaded
                q0, q1, q2, q3 = yt[0, i], yt[1, i], yt[2, i], yt[3, i]
                q4, q5, q6, q7 = yt[4, i], yt[5, i], yt[6, i], yt[7, i]
                x0, x1, x2, x3 = yt[0, left:right], yt[1, left:right], yt[2, left:right], yt[3, left:right]
                x4, x5, x6, x7 = yt[4, left:right], yt[5, left:right], yt[6, left:right], yt[7, left:right]
                for j in range(width):
                    t0, t1, t2, t3 = q0 - x0[j], q1 - x1[j], q2 - x2[j], q3 - x3[j]
                    t4, t5, t6, t7 = q4 - x4[j], q5 - x5[j], q6 - x6[j], q7 - x7[j]
                    sums[j] = (t0 * t0 + t1 * t1 + t2 * t2 + t3 * t3) + (t4 * t4 + t5 * t5 + t6 * t6 + t7 * t7)
                c = 8
            else:
                for j in range(width):
                    sums[j] = np.float32(0.0)
            while c + 2 <= dims:
                q0, q1 = yt[c, i], yt[c + 1, i]
                x0, x1 = yt[c, left:right], yt[c + 1, left:right]
                for j in range(width):
                    t0, t1 = q0 - x0[j], q1 - x1[j]
                    sums[j] += t0 * t0 + t1 * t1
                c += 2
            if c < dims:
                q0 = yt[c, i]
                x0 = yt[c, left:right]
                for j in range(width):
                    t0 = q0 - x0[j]
                    sums[j] += t0 * t0
            if root:
                for j in range(width):
                    sums[j] = math.sqrt(sums[j]) * scale
            else:
                for j in range(width):
                    sums[j] = sums[j] * scale


@fast_kernel
def products_finish(tile, row_norms, column_norms, root, scale):
    """Turn inner products into float32 distances, in place."""
    two = np.float32(2.0)
    zero = np.float32(0.0)
    width = tile.shape[1]
    for r in range(tile.shape[0]):
        row = tile[r]
        norm = row_norms[r]
        if root:
            for j in range(width):
                row[j] = math.sqrt(max(zero, norm + column_norms[j] - two * row[j])) * scale
        else:
            for j in range(width):
                row[j] = max(zero, norm + column_norms[j] - two * row[j]) * scale


@fast_kernel
def mirror_sums(tile, top, left, sums):
    """Sums of approximate distances for a tile of the upper triangle and its mirror.

    Up to 64 numbers are added in float32 before a sum goes on in float64 (`SUM_ERROR` bounds what that costs).
    """
    rows, width = tile.shape
    inner = max(0, min(width, top + rows - left))  # columns on the diagonal block count once
    column_sums = sums[left : left + width]
    r = 0
    while r + 8 <= rows:
        a, b, c, d = tile[r], tile[r + 1], tile[r + 2], tile[r + 3]
        e, f, g, h = tile[r + 4], tile[r + 5], tile[r + 6], tile[r + 7]
        for j in range(inner, width):
            column_sums[j] += np.float64(((a[j] + b[j]) + (c[j] + d[j])) + ((e[j] + f[j]) + (g[j] + h[j])))
        r += 8
    while r < rows:
        row = tile[r]
        for j in range(inner, width):
            column_sums[j] += np.float64(row[j])
        r += 1
    whole = width // 64 * 64
    for r in range(rows):
        row = tile[r]
        total = np.float64(0.0)
        for begin in range(0, whole, 64):
            part = np.float32(0.0)
            for j in range(64):
                part += row[begin + j]
            total += np.float64(part)
        for j in range(whole, width):
            total += np.float64(row[j])
        sums[top + r] += total


@fast_kernel
def invert(tile, floor):
    """Each distance becomes its inverse, or that of `floor` where it is smaller; in place."""
    bottom = np.float32(floor)
    one = np.float32(1.0)
    for r in range(tile.shape[0]):
        row = tile[r]
        for j in range(row.shape[0]):
            row[j] = one / max(bottom, row[j])


@fast_kernel
def mirror_approximate_gains(tile, top, left, nearest, gains):
    """Approximate gains, sum of max(0, nearest_i - d_ie), for a tile of the upper triangle and its mirror."""
    rows, width = tile.shape
    zero = np.float32(0.0)
    inner = max(0, min(width, top + rows - left))
    column_gains = gains[left : left + width]
    column_nearest = nearest[left : left + width]
    add_approximate_gains(tile, np.arange(rows), 0, nearest[top : top + rows], column_gains)
    whole = inner + (width - inner) // 64 * 64
    for r in range(rows):
        row = tile[r]
        total = np.float64(0.0)
        for begin in range(inner, whole, 64):
            part = np.float32(0.0)
            for j in range(64):
                part += max(zero, column_nearest[begin + j] - row[begin + j])
            total += np.float64(part)
        for j in range(whole, width):
            total += np.float64(max(zero, column_nearest[j] - row[j]))
        gains[top + r] += total


@fast_kernel
def add_approximate_gains(tile, tile_rows, offset, nearest, gains):
    """Add max(0, nearest_r - d_rj) of approximate distances to the gains of the candidates offset, offset + 1, ..."""
    width = gains.shape[0]
    zero = np.float32(0.0)
    r = 0
    while r + 4 <= tile_rows.shape[0]:
        a, b = tile[tile_rows[r], offset : offset + width], tile[tile_rows[r + 1], offset : offset + width]
        c, d = tile[tile_rows[r + 2], offset : offset + width], tile[tile_rows[r + 3], offset : offset + width]
        na, nb, nc, nd = nearest[r], nearest[r + 1], nearest[r + 2], nearest[r + 3]
        for j in range(width):
            gains[j] += np.float64(
                (max(zero, na - a[j]) + max(zero, nb - b[j])) + (max(zero, nc - c[j]) + max(zero, nd - d[j]))
            )
        r += 4
    while r < tile_rows.shape[0]:
        a, na = tile[tile_rows[r], offset : offset + width], nearest[r]
        for j in range(width):
            gains[j] += np.float64(max(zero, na - a[j]))
        r += 1


@fast_kernel
def drop_approximate_gains(tile, tile_rows, offset, old, new, gains):
    """Like `kernels_exact.drop_gains`, for approximate distances."""
    width = gains.shape[0]
    zero = np.float32(0.0)
    r = 0
    while r + 4 <= tile_rows.shape[0]:
        a, b = tile[tile_rows[r], offset : offset + width], tile[tile_rows[r + 1], offset : offset + width]
        c, d = tile[tile_rows[r + 2], offset : offset + width], tile[tile_rows[r + 3], offset : offset + width]
        oa, ob, oc, od = old[r], old[r + 1], old[r + 2], old[r + 3]
        sa, sb, sc, sd = oa - new[r], ob - new[r + 1], oc - new[r + 2], od - new[r + 3]
        for j in range(width):
            gains[j] -= np.float64(
                (min(sa, max(zero, oa - a[j])) + min(sb, max(zero, ob - b[j])))
                + (min(sc, max(zero, oc - c[j])) + min(sd, max(zero, od - d[j])))
            )
        r += 4
    while r < tile_rows.shape[0]:
        a, oa = tile[tile_rows[r], offset : offset + width], old[r]
        sa = oa - new[r]
        for j in range(width):
            gains[j] -= np.float64(min(sa, max(zero, oa - a[j])))
        r += 1
