/* A Redis list as a queue: LPUSH, RPOP or BRPOP. Nothing is acknowledged: a job is gone when it is fetched. */
#include <stdio.h>

#include "protocol.h"
#include "resp.h"

static void write_add(struct buffer *out, struct queues queue, struct text body) {
    (void)queue;
    buffer_append(out, text_of("*3\r\n$5\r\nLPUSH\r\n$1\r\nq\r\n"));
    resp_word(out, body);
}

static void write_fetch(struct buffer *out, struct queues queues, int count, bool blocking) {
    (void)queues;
    if (blocking) {
        buffer_append(out, text_of("*3\r\n$5\r\nBRPOP\r\n$1\r\nq\r\n$1\r\n0\r\n"));
        return;
    }
    char number[16];
    snprintf(number, sizeof number, "%d", count);
    buffer_append(out, text_of("*3\r\n$4\r\nRPOP\r\n$1\r\nq\r\n"));
    resp_word(out, text_of(number));
}

static void read_add(struct cursor *in) {
    cursor_number(in, ":", "the length of the list");
}

static int read_fetch(struct cursor *in, struct job *jobs) {
    long count = resp_array(in);
    if (count > FETCH_MAX) {
        cursor_fail(in, "not more jobs than asked for");
    }
    int found = 0;
    for (long i = 0; i < count && in->state == COMPLETE; i++) {
        struct text item = resp_bulk(in);
        if (i == 0 && text_is(item, "q")) { /* BRPOP names the list first */
            continue;
        }
        jobs[found++] = (struct job){.id = {"", 0}, .body = item};
    }
    return found;
}

const struct protocol redis_list = {
    .name = "list",
    .fetch_max = FETCH_MAX,
    .write_add = write_add,
    .write_fetch = write_fetch,
    .read_add = read_add,
    .read_fetch = read_fetch,
};
