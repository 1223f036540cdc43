/* What the generator needs from a broker's protocol: three requests and their replies.
 *
 * "Add" puts a job in, "fetch" takes jobs out, "acknowledge" finishes them. A request may be several commands on the
 * wire (a Redis stream needs XACK and XDEL to forget an entry); they are sent together and count as one. The readers
 * check every byte of a reply: an error reply, another job's queue or a count that differs makes the cursor WRONG.
 */
#ifndef PROTOCOL_H
#define PROTOCOL_H

#include "text.h"

enum { ID_MAX = 48, FETCH_MAX = 1024 };

struct job_id {
    unsigned length;
    char at[ID_MAX];
};

/* A job as a fetch returned it; the bytes live in the read buffer. */
struct job {
    struct text id, body;
};

/* The queues [first, first + span) out of `total`; numbers wrap. */
struct queues {
    long first, span, total;
};

struct protocol {
    const char *name;
    int fetch_max;     /* jobs one fetch can ask for */
    bool many_queues;  /* whether jobs can be spread over several queues */
    bool acknowledges; /* whether a fetched job has to be acknowledged */
    bool silent_ack;   /* whether an acknowledgement has no reply */
    bool one_at_a_time; /* whether adds cannot be pipelined */
    /* Say on a fresh blocking socket what comes before the first request; NULL for nothing. Exits when it fails. */
    void (*open_session)(int fd, bool worker);
    void (*write_add)(struct buffer *out, struct queues queue, struct text body);
    void (*write_fetch)(struct buffer *out, struct queues queues, int count, bool blocking);
    void (*write_ack)(struct buffer *out, const struct job_id *ids, int count);
    void (*read_add)(struct cursor *in);
    /* Fill `jobs` and return how many there are; 0 when the queue is empty. */
    int (*read_fetch)(struct cursor *in, struct job *jobs);
    void (*read_ack)(struct cursor *in, int count);
};

extern const struct protocol disque, redis_list, redis_stream, beanstalkd, amqp;

/* More words for ADDJOB ("REPLICATE 3 RETRY 60"), and the command that acknowledges (ACKJOB or FASTACK). */
void disque_configure(const char *add_options, const char *ack_command);

#endif
