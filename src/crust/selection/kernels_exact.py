"""Exact distances and exact sums of them: numba kernels, all of them without the GIL.

One formula gives a distance on every path: squares of differences in float64, summed in the order of the columns, then
the root (euclidean) or the factor (cosine), then rounded to float32.

Sums are exact too: every distance is first rounded to a multiple of a power of two (`snap`) so coarse that no sum of
them can lose a bit. Order of summation, tiles and threads then change nothing.
"""

import math

import numpy as np
from numba import njit

BLOCK = 512  # columns handled at once: a few of them fit the first-level cache
LEAF = 128  # candidates under one entry of the table of maxima
REFINE_RATIO = 1024.0  # sums get a finer quantum when the gains have fallen this far below the largest that could be


def magic_number(bound: float) -> float:
    """What to add and take away (`snap`) so that sums up to `bound` are exact."""
    return 1.5 * math.ldexp(1.0, math.ceil(math.log2(bound))) if bound > 0 else 0.0


def exact_kernel(function):
    """Compile without the GIL, keep the machine code on disk, divide like numpy."""
    return njit(nogil=True, cache=True, error_model="numpy")(function)


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
