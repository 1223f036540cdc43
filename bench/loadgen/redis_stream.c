/* A Redis stream as a queue: XADD; XREADGROUP by the group "g"; XACK and XDEL in one write.
 *
 * XDEL is part of an acknowledgement because a stream keeps what is only XACKed, for ever. The group must exist:
 * XGROUP CREATE q g 0 MKSTREAM.
 */
#include <stdio.h>

#include "protocol.h"
#include "resp.h"

static void write_add(struct buffer *out, struct queues queue, struct text body) {
    (void)queue;
    buffer_append(out, text_of("*5\r\n$4\r\nXADD\r\n$1\r\nq\r\n$1\r\n*\r\n$1\r\nb\r\n"));
    resp_word(out, body);
}

static void write_fetch(struct buffer *out, struct queues queues, int count, bool blocking) {
    (void)queues;
    char number[16];
    snprintf(number, sizeof number, "%d", count);
    resp_request(out, blocking ? 11 : 9);
    buffer_append(out, text_of("$10\r\nXREADGROUP\r\n$5\r\nGROUP\r\n$1\r\ng\r\n$1\r\nc\r\n$5\r\nCOUNT\r\n"));
    resp_word(out, text_of(number));
    if (blocking) {
        buffer_append(out, text_of("$5\r\nBLOCK\r\n$1\r\n0\r\n"));
    }
    buffer_append(out, text_of("$7\r\nSTREAMS\r\n$1\r\nq\r\n$1\r\n>\r\n"));
}

static void write_ack(struct buffer *out, const struct job_id *ids, int count) {
    resp_request(out, 3 + count);
    buffer_append(out, text_of("$4\r\nXACK\r\n$1\r\nq\r\n$1\r\ng\r\n"));
    for (int i = 0; i < count; i++) {
        resp_word(out, (struct text){ids[i].at, ids[i].length});
    }
    resp_request(out, 2 + count);
    buffer_append(out, text_of("$4\r\nXDEL\r\n$1\r\nq\r\n"));
    for (int i = 0; i < count; i++) {
        resp_word(out, (struct text){ids[i].at, ids[i].length});
    }
}

static void read_add(struct cursor *in) {
    resp_bulk(in);
}

static int read_fetch(struct cursor *in, struct job *jobs) {
    if (resp_array(in) < 0) {
        return 0;
    }
    resp_array_of(in, 2);
    resp_expect(in, "q");
    long count = resp_array(in);
    if (count > FETCH_MAX) {
        cursor_fail(in, "not more entries than asked for");
    }
    for (long i = 0; i < count && in->state == COMPLETE; i++) {
        resp_array_of(in, 2);
        jobs[i].id = resp_bulk(in);
        resp_array_of(in, 2);
        resp_expect(in, "b");
        jobs[i].body = resp_bulk(in);
    }
    return (int)count;
}

static void read_ack(struct cursor *in, int count) {
    resp_integer(in, count);
    resp_integer(in, count);
}

const struct protocol redis_stream = {
    .name = "stream",
    .fetch_max = FETCH_MAX,
    .acknowledges = true,
    .write_add = write_add,
    .write_fetch = write_fetch,
    .write_ack = write_ack,
    .read_add = read_add,
    .read_fetch = read_fetch,
    .read_ack = read_ack,
};
