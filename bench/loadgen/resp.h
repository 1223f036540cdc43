/* The Redis wire format, as much of it as the three Redis-like protocols share. */
#ifndef RESP_H
#define RESP_H

#include "text.h"

/* The header of a request of `words` words, then the words. */
void resp_request(struct buffer *out, int words);
void resp_word(struct buffer *out, struct text word);

/* The header of an array; -1 for the null array. */
long resp_array(struct cursor *in);
struct text resp_bulk(struct cursor *in);
/* An array header that must say `count`. */
void resp_array_of(struct cursor *in, long count);
/* An integer reply that must be `value`. */
void resp_integer(struct cursor *in, long value);
/* A bulk string that must be `word`. */
void resp_expect(struct cursor *in, const char *word);

#endif
