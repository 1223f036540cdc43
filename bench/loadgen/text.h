/* Bytes coming in and going out: a growing buffer, and a cursor that reads from it.
 *
 * A cursor has a sticky state. Every read function does nothing once the state is not COMPLETE, so a protocol reads a
 * whole reply in straight lines and looks at the state once, at the end. INCOMPLETE means "call again from the same
 * place when more bytes are there"; WRONG means that the peer broke the protocol or answered something else.
 */
#ifndef TEXT_H
#define TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes that somebody else owns. */
struct text {
    const char *at;
    size_t length;
};

/* Bytes [start, end) wait to be read or sent. */
struct buffer {
    char *data;
    size_t start, end, capacity;
};

enum reading { COMPLETE, INCOMPLETE, WRONG };

struct cursor {
    const char *at, *end;
    enum reading state;
    const char *expected; /* what should have stood there, when WRONG */
};

struct text text_of(const char *zero_terminated);
bool text_is(struct text text, const char *zero_terminated);

/* Make room for `more` bytes behind the end and return where they go. */
char *buffer_reserve(struct buffer *buffer, size_t more);
void buffer_append(struct buffer *buffer, struct text text);
void buffer_format(struct buffer *buffer, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buffer_consume(struct buffer *buffer, size_t length);

/* Mark the reply as wrong, unless it is already incomplete or wrong. */
void cursor_fail(struct cursor *in, const char *expected);
/* The rest of the line, without its CRLF. */
struct text cursor_line(struct cursor *in);
/* `length` bytes and the CRLF behind them. */
struct text cursor_bytes(struct cursor *in, long length);
/* A line of decimal digits behind `prefix`, which may be "". `expected` names it in an error. */
long cursor_number(struct cursor *in, const char *prefix, const char *expected);

#endif
