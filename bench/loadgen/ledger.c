/* See ledger.h. */
#include "ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long first_number, limit_number;
static struct text body;
static char *body_data;
static uint8_t *delivered; /* one bit for each number below the limit */
static uint64_t *due;      /* when each number from the first on was due, in ns */

void ledger_open(long first, long limit, int body_bytes) {
    first_number = first;
    limit_number = limit;
    body_data = malloc((size_t)body_bytes);
    delivered = calloc((size_t)limit / 8 + 1, 1);
    due = calloc((size_t)(limit - first) + 1, sizeof *due);
    if (body_data == NULL || delivered == NULL || due == NULL) {
        perror("loadgen: ledger");
        exit(2);
    }
    memset(body_data, 'x', (size_t)body_bytes);
    body = (struct text){body_data, (size_t)body_bytes};
}

struct text ledger_body(long number, uint64_t due_ns) {
    static const char digits[] = "0123456789abcdef";
    unsigned long rest = (unsigned long)number;
    for (int i = NUMBER_DIGITS - 1; i >= 0; i--) {
        body_data[i] = digits[rest & 15];
        rest >>= 4;
    }
    due[number - first_number] = due_ns;
    return body;
}

static long number_of(struct text text) {
    long number = 0;
    for (int i = 0; i < NUMBER_DIGITS; i++) {
        char digit = text.at[i];
        int value = digit >= '0' && digit <= '9' ? digit - '0' : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
        if (value < 0) {
            return -1;
        }
        number = number << 4 | value;
    }
    return number;
}

const char *ledger_deliver(struct text text, uint64_t now_ns, uint64_t *waited_ns) {
    if (text.length != body.length) {
        return "a body of the length that was added";
    }
    long number = number_of(text);
    if (number < 0 || number >= limit_number ||
        memcmp(text.at + NUMBER_DIGITS, body.at + NUMBER_DIGITS, body.length - NUMBER_DIGITS) != 0) {
        return "a body that was added";
    }
    uint8_t bit = (uint8_t)(1 << (number & 7));
    if (delivered[number >> 3] & bit) {
        return "a job that was not delivered before";
    }
    delivered[number >> 3] |= bit;
    *waited_ns = number >= first_number && due[number - first_number] != 0 ? now_ns - due[number - first_number] : 0;
    return NULL;
}
