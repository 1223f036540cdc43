/* Disque: ADDJOB, GETJOB, ACKJOB (or FASTACK).
 *
 * The words of an ADDJOB that never change are encoded once, because this is the request that is sent in bulk.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol.h"
#include "resp.h"

enum { JOB_ID_LENGTH = 40 };

static struct buffer add_head, add_tail; /* what stands before the queue and behind the body */
static const char *ack_command;

void disque_configure(const char *add_options, const char *ack) {
    ack_command = ack;
    resp_word(&add_tail, text_of("5000")); /* ms-timeout */
    int words = 4;
    char *options = strdup(add_options);
    for (char *word = strtok(options, " "); word != NULL; word = strtok(NULL, " ")) {
        resp_word(&add_tail, text_of(word));
        words++;
    }
    free(options);
    resp_request(&add_head, words);
    resp_word(&add_head, text_of("ADDJOB"));
}

/* "q" when there is only one, "q:7" otherwise. */
static void write_queue(struct buffer *out, long number, long total) {
    char name[32] = "q";
    if (total > 1) {
        snprintf(name, sizeof name, "q:%ld", number % total);
    }
    resp_word(out, text_of(name));
}

static void write_add(struct buffer *out, struct queues queue, struct text body) {
    buffer_append(out, (struct text){add_head.data, add_head.end});
    write_queue(out, queue.first, queue.total);
    resp_word(out, body);
    buffer_append(out, (struct text){add_tail.data, add_tail.end});
}

static void write_fetch(struct buffer *out, struct queues queues, int count, bool blocking) {
    resp_request(out, 4 + (blocking ? 0 : 1) + (int)queues.span);
    resp_word(out, text_of("GETJOB"));
    if (!blocking) {
        resp_word(out, text_of("NOHANG"));
    }
    char number[16];
    snprintf(number, sizeof number, "%d", count);
    resp_word(out, text_of("COUNT"));
    resp_word(out, text_of(number));
    resp_word(out, text_of("FROM"));
    for (long i = 0; i < queues.span; i++) {
        write_queue(out, queues.first + i, queues.total);
    }
}

static void write_ack(struct buffer *out, const struct job_id *ids, int count) {
    resp_request(out, 1 + count);
    resp_word(out, text_of(ack_command));
    for (int i = 0; i < count; i++) {
        resp_word(out, (struct text){ids[i].at, ids[i].length});
    }
}

static bool is_job_id(struct text id) {
    return id.length == JOB_ID_LENGTH && memcmp(id.at, "D-", 2) == 0 && id.at[10] == '-' && id.at[35] == '-';
}

static void read_add(struct cursor *in) {
    const char *start = in->at;
    struct text line = cursor_line(in);
    bool good = line.length > 0 && line.at[0] == '+' && is_job_id((struct text){line.at + 1, line.length - 1});
    if (!good && in->state == COMPLETE) {
        in->at = start;
        cursor_fail(in, "a job ID");
    }
}

static int read_fetch(struct cursor *in, struct job *jobs) {
    long count = resp_array(in);
    if (count > FETCH_MAX) {
        cursor_fail(in, "not more jobs than asked for");
    }
    for (long i = 0; i < count && in->state == COMPLETE; i++) {
        resp_array_of(in, 3);
        struct text queue = resp_bulk(in);
        if (in->state == COMPLETE && (queue.length == 0 || queue.at[0] != 'q')) {
            cursor_fail(in, "the queue that was asked for");
        }
        jobs[i].id = resp_bulk(in);
        if (in->state == COMPLETE && !is_job_id(jobs[i].id)) {
            cursor_fail(in, "a job ID");
        }
        jobs[i].body = resp_bulk(in);
    }
    return count > 0 ? (int)count : 0;
}

static void read_ack(struct cursor *in, int count) {
    resp_integer(in, count);
}

const struct protocol disque = {
    .name = "disque",
    .fetch_max = FETCH_MAX,
    .many_queues = true,
    .acknowledges = true,
    .write_add = write_add,
    .write_fetch = write_fetch,
    .write_ack = write_ack,
    .read_add = read_add,
    .read_fetch = read_fetch,
    .read_ack = read_ack,
};
