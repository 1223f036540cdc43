/* See resp.h. */
#include "resp.h"

/* `*12` or `$12` and CRLF. By hand: printf would cost more than all the rest of a request. */
static void header(struct buffer *out, char type, size_t number) {
    char line[24];
    char *at = line + sizeof line;
    *--at = '\n';
    *--at = '\r';
    do {
        *--at = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    *--at = type;
    buffer_append(out, (struct text){at, (size_t)(line + sizeof line - at)});
}

void resp_request(struct buffer *out, int words) {
    header(out, '*', (size_t)words);
}

void resp_word(struct buffer *out, struct text word) {
    header(out, '$', word.length);
    buffer_append(out, word);
    buffer_append(out, (struct text){"\r\n", 2});
}

long resp_array(struct cursor *in) {
    return cursor_number(in, "*", "an array");
}

struct text resp_bulk(struct cursor *in) {
    return cursor_bytes(in, cursor_number(in, "$", "a bulk string"));
}

void resp_array_of(struct cursor *in, long count) {
    const char *start = in->at;
    if (resp_array(in) != count && in->state == COMPLETE) {
        in->at = start;
        cursor_fail(in, "an array of another length");
    }
}

void resp_integer(struct cursor *in, long value) {
    const char *start = in->at;
    if (cursor_number(in, ":", "an integer") != value && in->state == COMPLETE) {
        in->at = start;
        cursor_fail(in, "as many as there were jobs");
    }
}

void resp_expect(struct cursor *in, const char *word) {
    const char *start = in->at;
    if (!text_is(resp_bulk(in), word) && in->state == COMPLETE) {
        in->at = start;
        cursor_fail(in, word);
    }
}
