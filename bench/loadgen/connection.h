/* One client: a non-blocking socket with its buffers, and what it is waiting for. */
#ifndef CONNECTION_H
#define CONNECTION_H

#include <openssl/ssl.h>
#include <stdint.h>

#include "protocol.h"

/* What the outstanding requests of a connection are; at most one kind at a time. */
enum phase { RESTING, ADDING, FETCHING, ACKNOWLEDGING };

struct connection {
    int fd;
    SSL *tls;            /* NULL for a connection without TLS */
    bool worker;         /* waits for jobs in a cycle; the others add them */
    enum phase phase;
    bool wants_writable; /* the kernel took only a part of `out` */
    struct buffer in, out;
    int waiting;         /* replies still to come */
    uint64_t *due_ns;    /* ring: when the adds on their way were due */
    unsigned due_mask, due_head;
    uint64_t asked_ns;   /* when the fetch or the acknowledgement left */
    long batch_first;    /* number of the first job of this batch (churn) */
    struct job_id *ids;  /* jobs fetched and not yet acknowledged */
    int held;
};

/* Connect, register with epoll, make room for `window` adds on their way. Exits with a message when it cannot.
 * `tls` is NULL for a connection without TLS. */
void connection_open(struct connection *connection, int epoll, const struct protocol *protocol, const char *host,
                     int port, SSL_CTX *tls, int window, int fetch);
/* Settings for connections with TLS 1.3 that trust every broker: the runs measure encryption, not trust. */
SSL_CTX *connection_tls(void);
/* Send what waits in `out`. False when the broker hung up. */
bool connection_flush(struct connection *connection, int epoll);
/* Read what is there. False when the broker hung up. */
bool connection_fill(struct connection *connection);

#endif
