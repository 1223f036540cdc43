/* AMQP 0-9-1 as RabbitMQ speaks it: confirmed publishes to a durable quorum queue, manual acknowledgements.
 *
 * Workers are pushed to (basic.consume, one unacknowledged job at a time); a drain pulls (basic.get). Publishes are
 * confirmed one at a time: a confirm may stand for several, so nothing is pipelined. An acknowledgement has no reply.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "protocol.h"

enum { METHOD = 1, HEADER = 2, BODY = 3, FRAME_END = 0xCE, HEAD_BYTES = 7, REPLY_MAX = 4096 };
enum { PERSISTENT_FLAG = 0x1000, PERSISTENT = 2, PREFETCH = 1 };

/* Class and method as one number. */
enum method {
    CONNECTION_START = 10 << 16 | 10, CONNECTION_START_OK, CONNECTION_TUNE = 10 << 16 | 30, CONNECTION_TUNE_OK,
    CONNECTION_OPEN = 10 << 16 | 40, CONNECTION_OPEN_OK, CHANNEL_OPEN = 20 << 16 | 10, CHANNEL_OPEN_OK,
    QUEUE_DECLARE = 50 << 16 | 10, QUEUE_DECLARE_OK, BASIC_QOS = 60 << 16 | 10, BASIC_QOS_OK,
    BASIC_CONSUME = 60 << 16 | 20, BASIC_CONSUME_OK, BASIC_PUBLISH = 60 << 16 | 40, BASIC_DELIVER = 60 << 16 | 60,
    BASIC_GET = 60 << 16 | 70, BASIC_GET_OK, BASIC_GET_EMPTY, BASIC_ACK = 60 << 16 | 80,
    CONFIRM_SELECT = 85 << 16 | 10, CONFIRM_SELECT_OK,
};

static const char QUEUE[] = "q";

/* -- writing ------------------------------------------------------------------------------------------------------- */

static void put(struct buffer *out, uint64_t value, int bytes) {
    char *at = buffer_reserve(out, (size_t)bytes);
    for (int i = 0; i < bytes; i++) {
        at[i] = (char)(value >> 8 * (bytes - 1 - i));
    }
    out->end += (size_t)bytes;
}

static void put_short(struct buffer *out, const char *word) {
    put(out, strlen(word), 1);
    buffer_append(out, text_of(word));
}

static void put_long(struct buffer *out, struct text word) {
    put(out, word.length, 4);
    buffer_append(out, word);
}

/* Begin a frame; its length is filled in by `end_frame`, which gets the offset that is returned. */
static size_t begin_frame(struct buffer *out, int type, int channel) {
    put(out, (uint64_t)type, 1);
    put(out, (uint64_t)channel, 2);
    put(out, 0, 4);
    return out->end - out->start;
}

static void end_frame(struct buffer *out, size_t payload_at) {
    uint32_t length = htonl((uint32_t)(out->end - out->start - payload_at));
    memcpy(out->data + out->start + payload_at - 4, &length, 4);
    put(out, FRAME_END, 1);
}

static size_t begin_method(struct buffer *out, int channel, enum method method) {
    size_t payload_at = begin_frame(out, METHOD, channel);
    put(out, method, 4);
    return payload_at;
}

static void write_add(struct buffer *out, struct queues queue, struct text body) {
    (void)queue;
    size_t at = begin_method(out, 1, BASIC_PUBLISH);
    put(out, 0, 2);
    put_short(out, "");
    put_short(out, QUEUE);
    put(out, 0, 1);
    end_frame(out, at);
    at = begin_frame(out, HEADER, 1);
    put(out, 60, 2);
    put(out, 0, 2);
    put(out, body.length, 8);
    put(out, PERSISTENT_FLAG, 2);
    put(out, PERSISTENT, 1);
    end_frame(out, at);
    at = begin_frame(out, BODY, 1);
    buffer_append(out, body);
    end_frame(out, at);
}

static void write_fetch(struct buffer *out, struct queues queues, int count, bool blocking) {
    (void)queues;
    (void)count;
    if (!blocking) { /* who waits is pushed to */
        size_t at = begin_method(out, 1, BASIC_GET);
        put(out, 0, 2);
        put_short(out, QUEUE);
        put(out, 0, 1);
        end_frame(out, at);
    }
}

static void write_ack(struct buffer *out, const struct job_id *ids, int count) {
    for (int i = 0; i < count; i++) {
        size_t at = begin_method(out, 1, BASIC_ACK);
        buffer_append(out, (struct text){ids[i].at, ids[i].length}); /* the delivery tag */
        put(out, 0, 1);
        end_frame(out, at);
    }
}

/* -- reading ------------------------------------------------------------------------------------------------------- */

static uint64_t number_at(const char *at, int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) {
        value = value << 8 | (unsigned char)at[i];
    }
    return value;
}

/* The payload of the next frame, which must be of this type. */
static struct text frame(struct cursor *in, int type) {
    struct text none = {NULL, 0};
    if (in->state != COMPLETE) {
        return none;
    }
    if (in->end - in->at < HEAD_BYTES) {
        in->state = INCOMPLETE;
        return none;
    }
    size_t length = number_at(in->at + 3, 4);
    if (in->at[0] != type) {
        cursor_fail(in, "a frame of another type");
        return none;
    }
    if ((size_t)(in->end - in->at) < HEAD_BYTES + length + 1) {
        in->state = INCOMPLETE;
        return none;
    }
    struct text payload = {in->at + HEAD_BYTES, length};
    in->at += HEAD_BYTES + length + 1;
    return payload;
}

static bool is(struct text payload, enum method method) {
    return payload.length >= 4 && number_at(payload.at, 4) == (uint64_t)method;
}

static void read_add(struct cursor *in) {
    const char *start = in->at;
    struct text payload = frame(in, METHOD);
    if (in->state == COMPLETE && !is(payload, BASIC_ACK)) {
        in->at = start;
        cursor_fail(in, "a confirm");
    }
}

static int read_fetch(struct cursor *in, struct job *jobs) {
    const char *start = in->at;
    struct text payload = frame(in, METHOD);
    if (in->state != COMPLETE || is(payload, BASIC_GET_EMPTY)) {
        return 0;
    }
    size_t tag_at = 4;
    if (is(payload, BASIC_DELIVER)) {
        tag_at += 1 + (unsigned char)payload.at[4]; /* behind the consumer's tag */
    } else if (!is(payload, BASIC_GET_OK)) {
        in->at = start;
        cursor_fail(in, "a delivery");
        return 0;
    }
    jobs[0].id = (struct text){payload.at + tag_at, 8};
    frame(in, HEADER);
    jobs[0].body = frame(in, BODY);
    return 1;
}

static void read_ack(struct cursor *in, int count) {
    (void)count;
    cursor_fail(in, "nothing: an acknowledgement has no reply");
}

/* -- opening a connection ------------------------------------------------------------------------------------------ */

static void refuse(const char *message) {
    fprintf(stderr, "loadgen: %s\n", message);
    exit(2);
}

static void send_all(int fd, struct buffer *out) {
    while (out->start < out->end) {
        ssize_t sent = write(fd, out->data + out->start, out->end - out->start);
        if (sent <= 0) {
            refuse("the broker closed a connection that was being opened");
        }
        buffer_consume(out, (size_t)sent);
    }
}

static void receive_bytes(int fd, char *at, size_t length) {
    for (size_t got = 0; got < length;) {
        ssize_t more = read(fd, at + got, length - got);
        if (more <= 0) {
            refuse("the broker closed a connection that was being opened (user guest, password guest, host /)");
        }
        got += (size_t)more;
    }
}

/* Read one frame, which must be that method; its payload is valid until the next call. */
static struct text receive_method(int fd, enum method method) {
    static char reply[REPLY_MAX];
    char head[HEAD_BYTES];
    receive_bytes(fd, head, sizeof head);
    size_t length = number_at(head + 3, 4);
    if (length + 1 > sizeof reply) {
        refuse("the broker's greeting is too long");
    }
    receive_bytes(fd, reply, length + 1);
    struct text payload = {reply, length};
    if (!is(payload, method)) {
        refuse("the broker answered with another AMQP method than the expected one");
    }
    return payload;
}

static void ask(int fd, struct buffer *out, size_t payload_at) {
    end_frame(out, payload_at);
    send_all(fd, out);
}

static void open_session(int fd, bool worker) {
    struct buffer out = {0};
    buffer_append(&out, (struct text){"AMQP\0\0\x09\x01", 8});
    send_all(fd, &out);
    receive_method(fd, CONNECTION_START);
    size_t at = begin_method(&out, 0, CONNECTION_START_OK);
    put(&out, 0, 4);
    put_short(&out, "PLAIN");
    put_long(&out, (struct text){"\0guest\0guest", 12});
    put_short(&out, "en_US");
    ask(fd, &out, at);
    struct text limits = receive_method(fd, CONNECTION_TUNE);
    at = begin_method(&out, 0, CONNECTION_TUNE_OK);
    buffer_append(&out, (struct text){limits.at + 4, 6});
    put(&out, 0, 2); /* no heartbeats */
    end_frame(&out, at);
    at = begin_method(&out, 0, CONNECTION_OPEN);
    put_short(&out, "/");
    put(&out, 0, 2);
    ask(fd, &out, at);
    receive_method(fd, CONNECTION_OPEN_OK);
    at = begin_method(&out, 1, CHANNEL_OPEN);
    put(&out, 0, 1);
    ask(fd, &out, at);
    receive_method(fd, CHANNEL_OPEN_OK);
    at = begin_method(&out, 1, QUEUE_DECLARE);
    put(&out, 0, 2);
    put_short(&out, QUEUE);
    put(&out, 2, 1); /* durable */
    put(&out, 13 + 1 + 4 + 6, 4);
    put_short(&out, "x-queue-type");
    put(&out, 'S', 1);
    put_long(&out, text_of("quorum"));
    ask(fd, &out, at);
    receive_method(fd, QUEUE_DECLARE_OK);
    if (!worker) {
        at = begin_method(&out, 1, CONFIRM_SELECT);
        put(&out, 0, 1);
        ask(fd, &out, at);
        receive_method(fd, CONFIRM_SELECT_OK);
    } else {
        at = begin_method(&out, 1, BASIC_QOS);
        put(&out, 0, 4);
        put(&out, PREFETCH, 2);
        put(&out, 0, 1);
        ask(fd, &out, at);
        receive_method(fd, BASIC_QOS_OK);
        at = begin_method(&out, 1, BASIC_CONSUME);
        put(&out, 0, 2);
        put_short(&out, QUEUE);
        put_short(&out, "");
        put(&out, 0, 1);
        put(&out, 0, 4);
        ask(fd, &out, at);
        receive_method(fd, BASIC_CONSUME_OK);
    }
    free(out.data);
}

const struct protocol amqp = {
    .name = "amqp",
    .fetch_max = 1,
    .acknowledges = true,
    .silent_ack = true,
    .one_at_a_time = true,
    .open_session = open_session,
    .write_add = write_add,
    .write_fetch = write_fetch,
    .write_ack = write_ack,
    .read_add = read_add,
    .read_fetch = read_fetch,
    .read_ack = read_ack,
};
