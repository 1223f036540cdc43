/* See run.h. One thread, one epoll set, one read and one write for each time a connection becomes readable.
 *
 * Closed loop (no rate): a connection sends its next request when the reply to an earlier one is there.
 * Open loop (a rate): adds are due at random moments of a Poisson process with a fixed seed, whether or not the broker
 * keeps up, and their latency counts from the moment they were due, so a stall is not hidden by requests that were
 * never sent. Between events the loop polls instead of sleeping: the generator has a core of its own.
 *
 * The first reply that is wrong ends the run: behind it nothing can be told apart any more.
 */
#include "run.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

#include "connection.h"
#include "ledger.h"

enum { EVENTS = 512, OPEN_LOOP_WINDOW = 1 << 14, SHOWN_BYTES = 120 };

static const struct options *options;
static const struct protocol *protocol;
static struct result *result;
static struct connection *connections;
static int epoll;
static uint64_t now_ns;   /* read once for each wakeup */
static long next_number;  /* of the next job to add */
static long limit_number;
static int active;        /* connections that are not resting */
static long window_limit;
static int next_producer; /* whose turn it is, in the open loop */

static uint64_t clock_ns(clockid_t clock) {
    struct timespec time;
    if (clock_gettime(clock, &time) != 0) {
        fprintf(stderr, "loadgen: cannot read a clock (is --server-pid a running process?): %s\n", strerror(errno));
        exit(2);
    }
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void fail(const char *message) {
    if (result->error[0] == '\0') {
        snprintf(result->error, sizeof result->error, "%s", message);
    }
}

static void fail_reply(const char *expected, const char *at, const char *end) {
    char shown[SHOWN_BYTES + 1];
    size_t length = (size_t)(end - at) < SHOWN_BYTES ? (size_t)(end - at) : SHOWN_BYTES;
    for (size_t i = 0; i < length; i++) {
        shown[i] = at[i] >= ' ' && at[i] <= '~' && at[i] != '"' && at[i] != '\\' ? at[i] : '.';
    }
    shown[length] = '\0';
    char message[sizeof result->error];
    snprintf(message, sizeof message, "expected %s, got: %s", expected, shown);
    fail(message);
}

static void enter(struct connection *connection, enum phase phase) {
    active += (phase != RESTING) - (connection->phase != RESTING);
    connection->phase = phase;
}

/* -- requests ------------------------------------------------------------------------------------------------------ */

static void send_add(struct connection *connection, uint64_t due_ns) {
    long number = next_number++;
    struct queues queue = {.first = number, .span = 1, .total = options->queues};
    protocol->write_add(&connection->out, queue, ledger_body(number, due_ns));
    unsigned slot = (connection->due_head + (unsigned)connection->waiting) & connection->due_mask;
    connection->due_ns[slot] = due_ns;
    connection->waiting++;
    enter(connection, ADDING);
}

static void send_fetch(struct connection *connection) {
    struct queues queues = {.first = 0, .span = 1, .total = options->queues};
    if (options->mode == MODE_CHURN) {
        queues.first = connection->batch_first;
        queues.span = options->fetch < options->queues ? options->fetch : options->queues;
    }
    protocol->write_fetch(&connection->out, queues, options->fetch, connection->worker);
    connection->asked_ns = now_ns;
    connection->waiting = 1;
    enter(connection, FETCHING);
}

static void send_ack(struct connection *connection) {
    protocol->write_ack(&connection->out, connection->ids, connection->held);
    if (protocol->silent_ack) {
        result->done += connection->held;
        send_fetch(connection);
        return;
    }
    connection->asked_ns = now_ns;
    connection->waiting = 1;
    enter(connection, ACKNOWLEDGING);
}

/* Keep `pipeline` adds on their way, as long as there are jobs to add. */
static void fill_window(struct connection *connection) {
    while (options->rate == 0 && connection->waiting < options->pipeline && next_number < limit_number) {
        send_add(connection, now_ns);
    }
    if (connection->waiting == 0) {
        enter(connection, RESTING);
    }
}

/* Add one more batch, if there is one. */
static void send_batch(struct connection *connection) {
    connection->batch_first = next_number;
    for (int i = 0; i < options->fetch && next_number < limit_number; i++) {
        send_add(connection, now_ns);
    }
    if (connection->waiting == 0) {
        enter(connection, RESTING);
    }
}

static void start(struct connection *connection) {
    if (options->mode == MODE_CHURN) {
        send_batch(connection);
    } else if (options->mode == MODE_GET || connection->worker) {
        send_fetch(connection);
    } else {
        fill_window(connection);
    }
}

/* Count an add in the window in which it was due. */
static void record_window(uint64_t due_ns) {
    long window = (long)((due_ns - result->start_ns) / 1000000u) / options->window_ms;
    window = window < window_limit ? window : window_limit - 1;
    histogram_record(&result->windows[window], now_ns - due_ns);
    if (window >= result->window_count) {
        result->window_count = window + 1;
    }
}

/* -- replies ------------------------------------------------------------------------------------------------------- */

static void on_added(struct connection *connection) {
    uint64_t due_ns = connection->due_ns[connection->due_head++ & connection->due_mask];
    histogram_record(&result->add, now_ns - due_ns);
    if (options->window_ms > 0) {
        record_window(due_ns);
    }
    connection->waiting--;
    if (options->mode == MODE_ADD) {
        result->done++;
    }
    if (options->mode == MODE_CHURN && connection->waiting == 0) {
        send_fetch(connection);
    }
}

static void on_fetched(struct connection *connection, const struct job *jobs, int count) {
    if (count > options->fetch) {
        fail("the broker delivered more jobs than were asked for");
        return;
    }
    if (options->mode == MODE_CHURN && count < options->fetch && count < next_number - connection->batch_first) {
        fail("a queue delivered fewer jobs than were just added to it");
        return;
    }
    if (!connection->worker) {
        histogram_record(&result->fetch, now_ns - connection->asked_ns);
    }
    connection->waiting = 0;
    connection->held = count;
    for (int i = 0; i < count; i++) {
        uint64_t waited_ns = 0;
        const char *expected = ledger_deliver(jobs[i].body, now_ns, &waited_ns);
        if (expected != NULL || jobs[i].id.length > ID_MAX) {
            fail_reply(expected != NULL ? expected : "a shorter job ID", jobs[i].body.at,
                       jobs[i].body.at + jobs[i].body.length);
            return;
        }
        if (connection->worker) {
            histogram_record(&result->delivery, waited_ns);
        }
        connection->ids[i].length = (unsigned)jobs[i].id.length;
        memcpy(connection->ids[i].at, jobs[i].id.at, jobs[i].id.length);
    }
    if (count == 0 && !connection->worker) {
        enter(connection, RESTING); /* the queue is drained */
    } else if (count > 0 && protocol->acknowledges) {
        send_ack(connection);
    } else {
        result->done += count;
        start(connection);
    }
}

static void on_acknowledged(struct connection *connection) {
    histogram_record(&result->ack, now_ns - connection->asked_ns);
    connection->waiting = 0;
    result->done += connection->held;
    start(connection);
}

/* Read one reply of the kind the connection waits for. False when it is not complete yet, or wrong. */
static bool take_reply(struct connection *connection) {
    static struct job jobs[FETCH_MAX];
    const char *start_at = connection->in.data + connection->in.start;
    struct cursor in = {.at = start_at, .end = connection->in.data + connection->in.end};
    int count = 0;
    switch (connection->phase) {
        case RESTING: cursor_fail(&in, "no reply, as nothing was asked"); break;
        case ADDING: protocol->read_add(&in); break;
        case FETCHING: count = protocol->read_fetch(&in, jobs); break;
        case ACKNOWLEDGING: protocol->read_ack(&in, connection->held); break;
    }
    if (in.state == WRONG) {
        fail_reply(in.expected, in.at, in.end);
    }
    if (in.state != COMPLETE) {
        return false;
    }
    switch (connection->phase) {
        case RESTING: break;
        case ADDING: on_added(connection); break;
        case FETCHING: on_fetched(connection, jobs, count); break;
        case ACKNOWLEDGING: on_acknowledged(connection); break;
    }
    buffer_consume(&connection->in, (size_t)(in.at - start_at));
    return true;
}

static void on_event(struct connection *connection, uint32_t events) {
    if ((events & ~(uint32_t)EPOLLOUT) && !connection_fill(connection)) {
        fail("the broker closed a connection");
        return;
    }
    now_ns = clock_ns(CLOCK_MONOTONIC);
    while (connection->in.start < connection->in.end && take_reply(connection)) {
    }
    if (result->error[0] == '\0' && connection->phase == ADDING && options->mode != MODE_CHURN) {
        fill_window(connection);
    }
    if (!connection_flush(connection, epoll)) {
        fail("the broker closed a connection");
    }
}

/* -- the run ------------------------------------------------------------------------------------------------------- */

/* The pause before the next job of a Poisson process, in ns (xorshift64*, inverse transform). */
static double next_gap_ns(void) {
    static uint64_t state = 0x9e3779b97f4a7c15u;
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    double uniform = (double)((state * 0x2545f4914f6cdd1du) >> 11) * 0x1p-53;
    return -log(1.0 - uniform) * 1e9 / options->rate;
}

/* Send every add that is due by now, each on the next producer. */
static void send_due(double *due_ns) {
    now_ns = clock_ns(CLOCK_MONOTONIC);
    while (*due_ns <= (double)now_ns && next_number < limit_number && result->error[0] == '\0') {
        struct connection *connection = &connections[next_producer];
        next_producer = (next_producer + 1) % (options->connections - options->workers);
        if (connection->waiting == OPEN_LOOP_WINDOW) {
            fail("the broker is more than 16384 requests behind on a connection: the rate is above what it can do");
            return;
        }
        send_add(connection, (uint64_t)*due_ns);
        if (!connection_flush(connection, epoll)) {
            fail("the broker closed a connection");
        }
        *due_ns += next_gap_ns();
    }
}

static void loop(uint64_t start_ns) {
    struct epoll_event events[EVENTS];
    double due_ns = (double)start_ns;
    bool open_loop = options->rate > 0;
    while (result->error[0] == '\0' && result->done < options->jobs && (active > 0 || open_loop)) {
        int count = epoll_wait(epoll, events, EVENTS, open_loop ? 0 : 1000);
        for (int i = 0; i < count && result->error[0] == '\0'; i++) {
            on_event(events[i].data.ptr, events[i].events);
        }
        if (open_loop) {
            send_due(&due_ns);
        }
        if (count <= 0 && (double)(clock_ns(CLOCK_MONOTONIC) - start_ns) > options->time_limit_s * 1e9) {
            fail("the run did not end within its time limit");
        }
    }
}

/* Return when the broker is done with what was sent so far: it used less than 5 % of a core for 20 ms. */
static void settle(clockid_t server_clock) {
    const struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
    for (int tries = 0; tries < 250; tries++) {
        uint64_t before_ns = clock_ns(server_clock);
        nanosleep(&pause, NULL);
        if (clock_ns(server_clock) - before_ns < 1000 * 1000) {
            return;
        }
    }
}

static void start_role(bool workers) {
    for (int i = 0; i < options->connections; i++) {
        if (connections[i].worker == workers) {
            now_ns = clock_ns(CLOCK_MONOTONIC);
            start(&connections[i]);
            connection_flush(&connections[i], epoll);
        }
    }
}

void run(const struct options *chosen, struct result *filled) {
    options = chosen;
    protocol = chosen->protocol;
    result = filled;
    next_number = options->first;
    limit_number = options->mode == MODE_GET ? options->first : options->first + options->jobs;
    ledger_open(options->first, options->first + options->jobs, options->body_bytes);
    if (options->window_ms > 0) {
        window_limit = (long)(options->time_limit_s * 1000) / options->window_ms + 1;
        result->windows = calloc((size_t)window_limit, sizeof *result->windows);
    }
    clockid_t server_clock;
    if (clock_getcpuclockid(options->server_pid, &server_clock) != 0) {
        fprintf(stderr, "loadgen: --server-pid %d is not a running process\n", options->server_pid);
        exit(2);
    }
    epoll = epoll_create1(0);
    connections = calloc((size_t)options->connections, sizeof *connections);
    int window = options->rate > 0 ? OPEN_LOOP_WINDOW : options->pipeline;
    window = window > options->fetch ? window : options->fetch;
    SSL_CTX *tls = options->tls ? connection_tls() : NULL;
    for (int i = 0; i < options->connections; i++) {
        connections[i].worker = i >= options->connections - options->workers;
        int port = connections[i].worker ? options->worker_port : options->port;
        connection_open(&connections[i], epoll, protocol, options->host, port, tls, window, options->fetch);
    }
    start_role(true);
    settle(server_clock);

    uint64_t server_ns = clock_ns(server_clock);
    uint64_t generator_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    uint64_t start_ns = clock_ns(CLOCK_MONOTONIC);
    result->start_ns = start_ns;
    start_role(false);
    loop(start_ns);
    result->seconds = (double)(clock_ns(CLOCK_MONOTONIC) - start_ns) / 1e9;
    result->server_cpu_s = (double)(clock_ns(server_clock) - server_ns) / 1e9;
    result->generator_cpu_s = (double)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - generator_ns) / 1e9;
    if (result->done != options->jobs) {
        char message[128];
        snprintf(message, sizeof message, "%ld of %ld jobs never came back", options->jobs - result->done, options->jobs);
        fail(message);
    }
}
