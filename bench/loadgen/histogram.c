/* See histogram.h. */
#include "histogram.h"

/* Values below 64 have a bucket each; above, the six bits behind the leading one choose the step. */
static unsigned bucket_of(uint64_t ns) {
    if (ns < HISTOGRAM_STEPS) {
        return (unsigned)ns;
    }
    unsigned shift = 63 - (unsigned)__builtin_clzll(ns) - 6;
    unsigned bucket = (shift + 1) * HISTOGRAM_STEPS + (unsigned)(ns >> shift) - HISTOGRAM_STEPS;
    return bucket < HISTOGRAM_BUCKETS ? bucket : HISTOGRAM_BUCKETS - 1;
}

/* The largest value that falls into the bucket. */
static uint64_t bucket_top(unsigned bucket) {
    if (bucket < HISTOGRAM_STEPS) {
        return bucket;
    }
    unsigned shift = bucket / HISTOGRAM_STEPS - 1;
    return ((uint64_t)(bucket % HISTOGRAM_STEPS + HISTOGRAM_STEPS + 1) << shift) - 1;
}

void histogram_record(struct histogram *histogram, uint64_t ns) {
    histogram->count++;
    histogram->buckets[bucket_of(ns)]++;
    if (ns > histogram->max_ns) {
        histogram->max_ns = ns;
    }
}

uint64_t histogram_quantile(const struct histogram *histogram, double share) {
    uint64_t wanted = (uint64_t)(share * (double)histogram->count);
    uint64_t seen = 0;
    for (unsigned bucket = 0; bucket < HISTOGRAM_BUCKETS; bucket++) {
        seen += histogram->buckets[bucket];
        if (seen > wanted) {
            uint64_t top = bucket_top(bucket);
            return top < histogram->max_ns ? top : histogram->max_ns;
        }
    }
    return histogram->max_ns;
}
