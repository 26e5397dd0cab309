"""Numba kernels, all of them without the GIL: exact distances and sums, and fast passes over all pairs in float32.

One formula gives a distance on every path: squares of differences in float64, summed in the order of the columns, then
the root (euclidean) or the factor (cosine), then rounded to float32.

Sums are exact too: every distance is first rounded to a multiple of a power of two (`snap`) so coarse that no sum of
them can lose a bit. Order of summation, tiles and threads then change nothing.

What the float32 passes find is close to the truth, never taken for it: each of their distances has a proven error bound
(`distances.py`), and whatever the bound leaves open is settled with exact ones.
"""

import math

import numpy as np
from numba import njit

BLOCK = 512  # columns handled at once: a few of them fit the first-level cache
LEAF = 128  # candidates under one entry of the table of maxima
REFINE_RATIO = 1024.0  # sums get a finer quantum when the gains have fallen this far below the largest that could be
SUM_ERROR = 64 * 2.0**-24  # relative error of sums that begin in float32


def magic_number(bound: float) -> float:
    """What to add and take away (`snap`) so that sums up to `bound` are exact."""
    return 1.5 * math.ldexp(1.0, math.ceil(math.log2(bound))) if bound > 0 else 0.0


def exact_kernel(function):
    """Compile without the GIL, keep the machine code on disk, divide like numpy."""
    return njit(nogil=True, cache=True, error_model="numpy")(function)


def fast_kernel(function):
    """Compile without the GIL, keep the machine code on disk, add in any order."""
    return njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz", "arcp", "nnan"})(
        function
    )


@exact_kernel
def snap(value, magic):
    """`value` as a multiple of the quantum behind `magic` (1.5 * 2**52 quanta): adding and taking away rounds it."""
    return (np.float64(value) + magic) - magic


# ---------------------------------------------------------------- exact distances


@exact_kernel
def finish(total, root, factor):
    value = math.sqrt(total) if root else total * factor
    return np.float32(value)


@exact_kernel
def exact_block(xt, query, start, stop, root, factor, sums, out):
    """Distances from the vector `query` to the columns start..stop of `xt` into `out`."""
    width = stop - start
    dims = xt.shape[0]
    for j in range(width):
        sums[j] = 0.0
    c = 0
    while c + 4 <= dims:  # four columns at a time: the running sums are loaded and stored a quarter as often
        q0, q1, q2, q3 = query[c], query[c + 1], query[c + 2], query[c + 3]
        x0, x1, x2, x3 = xt[c, start:stop], xt[c + 1, start:stop], xt[c + 2, start:stop], xt[c + 3, start:stop]
        for j in range(width):
            t0 = q0 - x0[j]
            t1 = q1 - x1[j]
            t2 = q2 - x2[j]
            t3 = q3 - x3[j]
            sums[j] = (((sums[j] + t0 * t0) + t1 * t1) + t2 * t2) + t3 * t3
        c += 4
    while c < dims:
        q0 = query[c]
        x0 = xt[c, start:stop]
        for j in range(width):
            t0 = q0 - x0[j]
            sums[j] += t0 * t0
        c += 1
    if root:
        for j in range(width):
            out[j] = np.float32(math.sqrt(sums[j]))
    else:
        for j in range(width):
            out[j] = np.float32(sums[j] * factor)


@exact_kernel
def exact_tile(x, xt, rows, start, stop, root, factor, out):
    """Exact distances from the points `rows` to the points start..stop."""
    sums = np.empty(BLOCK, np.float64)
    for left in range(start, stop, BLOCK):
        right = min(stop, left + BLOCK)
        for r in range(rows.shape[0]):
            exact_block(xt, x[rows[r]], left, right, root, factor, sums, out[r, left - start : right - start])


@exact_kernel
def exact_pairs(x, query, others, root, factor, out):
    """Exact distances from the vector `query` to the points `others`; four sums at a time hide the latency."""
    dims = x.shape[1]
    count = others.shape[0]
    k = 0
    while k + 4 <= count:
        a, b, c, d = x[others[k]], x[others[k + 1]], x[others[k + 2]], x[others[k + 3]]
        sa = sb = sc = sd = 0.0
        for t in range(dims):
            q = query[t]
            ta = q - a[t]
            tb = q - b[t]
            tc = q - c[t]
            td = q - d[t]
            sa += ta * ta
            sb += tb * tb
            sc += tc * tc
            sd += td * td
        out[k] = finish(sa, root, factor)
        out[k + 1] = finish(sb, root, factor)
        out[k + 2] = finish(sc, root, factor)
        out[k + 3] = finish(sd, root, factor)
        k += 4
    while k < count:
        a = x[others[k]]
        sa = 0.0
        for t in range(dims):
            ta = query[t] - a[t]
            sa += ta * ta
        out[k] = finish(sa, root, factor)
        k += 1


# ---------------------------------------------------------------- passes over tiles


@exact_kernel
def store(tile, top, left, matrix):
    """Write a tile into the square matrix."""
    rows, width = tile.shape
    for r in range(rows):
        row = matrix[top + r, left : left + width]
        for j in range(width):
            row[j] = tile[r, j]


@exact_kernel
def mirror(matrix, top, bottom):
    """Fill the rows top..bottom left of the diagonal from the columns above it."""
    for first in range(0, bottom, 32):  # small squares, so that each line of the cache is read once
        for left in range(top, bottom, 32):
            for i in range(left, min(bottom, left + 32)):
                row = matrix[i]
                for j in range(first, min(i, first + 32)):
                    row[j] = matrix[j, i]


@exact_kernel
def column_maxima(tile, left, largest):
    """Largest distance in each column. Columns are enough: of the two points farthest apart, one will have it."""
    width = tile.shape[1]
    columns = largest[left : left + width]
    for r in range(tile.shape[0]):
        row = tile[r]
        for j in range(width):
            columns[j] = max(columns[j], row[j])


@exact_kernel
def exact_sums(tile, top, left, magic, sums):
    """Row sums of exact distances for a tile of the upper triangle and its mirror."""
    rows, width = tile.shape
    inner = max(0, min(width, top + rows - left))
    column_sums = sums[left : left + width]
    parts = np.zeros(8)  # independent sums, so that one addition need not wait for the last
    whole = width // 8 * 8
    for r in range(rows):
        row = tile[r]
        for j in range(inner, width):
            column_sums[j] += snap(row[j], magic)
        for p in range(8):
            parts[p] = 0.0
        for j in range(0, whole, 8):
            for p in range(8):
                parts[p] += snap(row[j + p], magic)
        for j in range(whole, width):
            parts[0] += snap(row[j], magic)
        for p in range(8):
            sums[top + r] += parts[p]


@exact_kernel
def mirror_gains(tile, top, left, nearest, magic, gains):
    """Add max(0, nearest_i - d_ie) to the gain of e, for a tile of the upper triangle and its mirror."""
    rows, width = tile.shape
    inner = max(0, min(width, top + rows - left))
    column_gains = gains[left : left + width]
    column_nearest = nearest[left : left + width]
    parts = np.empty(8)
    for r in range(rows):
        row = tile[r]
        old = snap(nearest[top + r], magic)
        for j in range(width):
            column_gains[j] += max(0.0, old - snap(row[j], magic))
        for p in range(8):
            parts[p] = 0.0
        whole = inner + (width - inner) // 8 * 8
        for j in range(inner, whole, 8):
            for p in range(8):
                parts[p] += max(0.0, snap(column_nearest[j + p], magic) - snap(row[j + p], magic))
        for j in range(whole, width):
            parts[0] += max(0.0, snap(column_nearest[j], magic) - snap(row[j], magic))
        for p in range(8):
            gains[top + r] += parts[p]


@exact_kernel
def drop_gains(tile, tile_rows, offset, old, new, magic, gains):
    """Points whose medoid came closer (old -> new): lower the gains of the candidates offset, offset + 1, ..."""
    width = gains.shape[0]
    for r in range(tile_rows.shape[0]):
        row = tile[tile_rows[r], offset : offset + width]
        before = snap(old[r], magic)
        step = before - snap(new[r], magic)
        for j in range(width):
            gains[j] -= min(step, max(0.0, before - snap(row[j], magic)))


@exact_kernel
def total_gain(nearest, distances, magic):
    """Exact gain of one candidate: sum of max(0, nearest - distance)."""
    total = 0.0
    for i in range(distances.shape[0]):
        total += max(0.0, snap(nearest[i], magic) - snap(distances[i], magic))
    return total


@exact_kernel
def snapped_sum(values, magic):
    total = 0.0
    for i in range(values.shape[0]):
        total += snap(values[i], magic)
    return total


@exact_kernel
def below(row, limits, found):
    """Positions where row <= limits, into `found`; returns how many."""
    count = 0
    for j in range(row.shape[0]):
        found[count] = j
        count += row[j] <= limits[j]
    return count


@exact_kernel
def update_nearest(found, distances, medoid, picked, nearest, owner, changed, old, new):
    """Give each found point to the new medoid where it is nearer, or as near with a lower index.

    Returns how many came nearer; they are listed in `changed` with their old and new distance.
    """
    count = 0
    for t in range(found.shape[0]):
        i = found[t]
        d = distances[t]
        if d < nearest[i]:
            changed[count] = i
            old[count] = nearest[i]
            new[count] = d
            count += 1
            nearest[i] = d
            owner[i] = medoid
        elif d == nearest[i] and medoid < owner[i] and not picked[i]:
            owner[i] = medoid
    return count


# ---------------------------------------------------------------- approximate distances in float32


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
def products_kept(matrix, top, left, row_norms, column_norms, root, scale, tile):
    """The same of a part of the square matrix, in place, and into `tile`, which stays near."""
    two = np.float32(2.0)
    zero = np.float32(0.0)
    rows, width = tile.shape
    for r in range(rows):
        kept, row = matrix[top + r, left : left + width], tile[r]
        norm = row_norms[r]
        if root:
            for j in range(width):
                far = math.sqrt(max(zero, norm + column_norms[j] - two * kept[j])) * scale
                kept[j] = far
                row[j] = far
        else:
            for j in range(width):
                far = max(zero, norm + column_norms[j] - two * kept[j]) * scale
                kept[j] = far
                row[j] = far


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
    """Like `drop_gains`, for approximate distances."""
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
