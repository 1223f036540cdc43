/* beanstalkd: put, reserve, delete, on the default tube. It hands out one job at a time. */
#include <string.h>

#include "protocol.h"

static void write_add(struct buffer *out, struct queues queue, struct text body) {
    (void)queue;
    buffer_format(out, "put 1024 0 300 %zu\r\n", body.length); /* priority, delay, seconds to run: as RETRY 300 */
    buffer_append(out, body);
    buffer_append(out, text_of("\r\n"));
}

static void write_fetch(struct buffer *out, struct queues queues, int count, bool blocking) {
    (void)queues;
    (void)count;
    buffer_append(out, text_of(blocking ? "reserve\r\n" : "reserve-with-timeout 0\r\n"));
}

static void write_ack(struct buffer *out, const struct job_id *ids, int count) {
    for (int i = 0; i < count; i++) {
        buffer_append(out, text_of("delete "));
        buffer_append(out, (struct text){ids[i].at, ids[i].length});
        buffer_append(out, text_of("\r\n"));
    }
}

static void read_add(struct cursor *in) {
    cursor_number(in, "INSERTED ", "INSERTED and a job ID");
}

/* RESERVED <id> <bytes>, then the body; TIMED_OUT when there is none. */
static int read_fetch(struct cursor *in, struct job *jobs) {
    static const char head[] = "RESERVED ";
    const size_t skip = sizeof head - 1;
    const char *start = in->at;
    struct text line = cursor_line(in);
    if (in->state != COMPLETE || text_is(line, "TIMED_OUT")) {
        return 0;
    }
    const char *end = line.at + line.length;
    const char *space = line.length > skip ? memchr(line.at + skip, ' ', line.length - skip) : NULL;
    if (space == NULL || memcmp(line.at, head, skip) != 0) {
        in->at = start;
        cursor_fail(in, "RESERVED, a job ID and a length");
        return 0;
    }
    jobs[0].id = (struct text){line.at + skip, (size_t)(space - line.at) - skip};
    long length = 0;
    for (const char *digit = space + 1; digit < end; digit++) {
        length = length * 10 + (*digit - '0');
    }
    jobs[0].body = cursor_bytes(in, length);
    return 1;
}

static void read_ack(struct cursor *in, int count) {
    for (int i = 0; i < count; i++) {
        const char *start = in->at;
        if (!text_is(cursor_line(in), "DELETED") && in->state == COMPLETE) {
            in->at = start;
            cursor_fail(in, "DELETED");
        }
    }
}

const struct protocol beanstalkd = {
    .name = "beanstalk",
    .fetch_max = 1,
    .acknowledges = true,
    .write_add = write_add,
    .write_fetch = write_fetch,
    .write_ack = write_ack,
    .read_add = read_add,
    .read_fetch = read_fetch,
    .read_ack = read_ack,
};
