/* See text.h. */
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct text text_of(const char *zero_terminated) {
    return (struct text){zero_terminated, strlen(zero_terminated)};
}

bool text_is(struct text text, const char *zero_terminated) {
    return text.length == strlen(zero_terminated) && memcmp(text.at, zero_terminated, text.length) == 0;
}

char *buffer_reserve(struct buffer *buffer, size_t more) {
    if (buffer->end + more > buffer->capacity && buffer->start > 0) {
        memmove(buffer->data, buffer->data + buffer->start, buffer->end - buffer->start);
        buffer->end -= buffer->start;
        buffer->start = 0;
    }
    if (buffer->end + more > buffer->capacity) {
        buffer->capacity = 2 * (buffer->end + more);
        buffer->data = realloc(buffer->data, buffer->capacity);
        if (buffer->data == NULL) {
            perror("loadgen: buffer");
            exit(2);
        }
    }
    return buffer->data + buffer->end;
}

void buffer_append(struct buffer *buffer, struct text text) {
    memcpy(buffer_reserve(buffer, text.length), text.at, text.length);
    buffer->end += text.length;
}

void buffer_format(struct buffer *buffer, const char *format, ...) {
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof line) {
        fprintf(stderr, "loadgen: a request line is longer than %zu bytes\n", sizeof line);
        exit(2);
    }
    buffer_append(buffer, (struct text){line, (size_t)length});
}

void buffer_consume(struct buffer *buffer, size_t length) {
    buffer->start += length;
    if (buffer->start == buffer->end) {
        buffer->start = buffer->end = 0;
    }
}

void cursor_fail(struct cursor *in, const char *expected) {
    if (in->state == COMPLETE) {
        in->state = WRONG;
        in->expected = expected;
    }
}

struct text cursor_line(struct cursor *in) {
    struct text none = {"", 0};
    if (in->state != COMPLETE) {
        return none;
    }
    const char *stop = memchr(in->at, '\r', (size_t)(in->end - in->at));
    if (stop == NULL || stop + 1 == in->end) {
        in->state = INCOMPLETE;
        return none;
    }
    struct text line = {in->at, (size_t)(stop - in->at)};
    if (stop[1] != '\n') {
        cursor_fail(in, "a line feed behind a carriage return");
        return none;
    }
    in->at = stop + 2;
    return line;
}

struct text cursor_bytes(struct cursor *in, long length) {
    struct text none = {"", 0};
    if (in->state != COMPLETE) {
        return none;
    }
    if (length < 0) {
        cursor_fail(in, "a length");
        return none;
    }
    if (in->end - in->at < length + 2) {
        in->state = INCOMPLETE;
        return none;
    }
    struct text bytes = {in->at, (size_t)length};
    if (in->at[length] != '\r' || in->at[length + 1] != '\n') {
        cursor_fail(in, "a line end behind counted bytes");
        return none;
    }
    in->at += length + 2;
    return bytes;
}

long cursor_number(struct cursor *in, const char *prefix, const char *expected) {
    const char *start = in->at;
    struct text line = cursor_line(in);
    if (in->state != COMPLETE) {
        return 0;
    }
    size_t skip = strlen(prefix);
    bool negative = false;
    long value = 0;
    if (line.length <= skip || memcmp(line.at, prefix, skip) != 0) {
        goto wrong;
    }
    if (line.at[skip] == '-') {
        negative = true;
        skip++;
    }
    if (line.length == skip || line.length - skip > 18) {
        goto wrong;
    }
    for (; skip < line.length; skip++) {
        if (line.at[skip] < '0' || line.at[skip] > '9') {
            goto wrong;
        }
        value = value * 10 + (line.at[skip] - '0');
    }
    return negative ? -value : value;
wrong:
    in->at = start; /* the report of the error shows the reply from here */
    cursor_fail(in, expected);
    return 0;
}
