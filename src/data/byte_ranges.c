/* byte_ranges.c: see byte_ranges.h. */
#include "data/byte_ranges.h"

#include "base/compiler.h"

bool dr__byte_ranges_add(dr__byte_ranges *ranges, uint64_t offset, uint64_t size, uint64_t gap)
{
    if (size == 0)
        return true;
    dr__byte_range *last = ranges->n ? &ranges->at[ranges->n - 1] : NULL;
    const uint64_t last_end = last ? last->offset + last->size : 0;
    if (last && (offset <= last_end || offset - last_end < gap)) {
        last->size = DR_MAX(last_end, offset + size) - last->offset;
        return true;
    }
    if (ranges->n == DR__MOST_RANGES)
        return false;
    ranges->at[ranges->n++] = (dr__byte_range){ offset, size };
    return true;
}

uint64_t dr__byte_ranges_total(const dr__byte_ranges *ranges)
{
    uint64_t total = 0;
    for (int i = 0; i < ranges->n; i++)
        total += ranges->at[i].size;
    return total;
}

const dr__byte_piece *dr__byte_piece_at(const dr__byte_piece *pieces, int n, uint64_t offset)
{
    int low = 0, high = n;
    while (low < high) { /* the last piece that begins at or before it */
        const int middle = low + (high - low) / 2;
        if (pieces[middle].offset <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low && offset - pieces[low - 1].offset < pieces[low - 1].size ? &pieces[low - 1] : NULL;
}
