/* One measured run: which requests go out, and what came of them. */
#ifndef RUN_H
#define RUN_H

#include "histogram.h"
#include "protocol.h"

/* ADD puts jobs in; GET fetches and acknowledges until none are left; CYCLE has producers and blocked workers;
 * CHURN adds, fetches and acknowledges a batch on each connection, so the number of waiting jobs stays what it was. */
enum mode { MODE_ADD, MODE_GET, MODE_CYCLE, MODE_CHURN };

struct options {
    const struct protocol *protocol;
    enum mode mode;
    const char *host;
    int port;
    bool tls;        /* connections use TLS 1.3 */
    int worker_port; /* where workers connect: another node of the same cluster, or the same */
    int server_pid;
    int connections;
    int workers;    /* of the connections, in a cycle */
    int pipeline;   /* adds on their way on each connection */
    int fetch;      /* jobs asked for at once; the size of a batch in a churn */
    long jobs;      /* to add, or to get */
    long first;     /* number of the first one; smaller numbers wait in the broker already */
    long queues;
    int body_bytes;
    double rate;    /* jobs per second, at random moments; 0 for as fast as replies come */
    long window_ms; /* adds are counted by windows of this length as well, by when they were due; 0 for none */
    double time_limit_s;
};

struct result {
    double seconds;
    long done;              /* jobs whose last reply came */
    double server_cpu_s;    /* user and system time of the broker's process */
    double generator_cpu_s;
    struct histogram add, fetch, ack, delivery; /* delivery: from when the add was due to the worker, in a cycle */
    uint64_t start_ns;         /* on the monotonic clock */
    struct histogram *windows; /* of adds */
    long window_count;         /* of those up to the last one that has an add */
    char error[512];        /* empty when every reply was right */
};

void run(const struct options *options, struct result *result);

#endif
