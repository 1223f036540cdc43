/* loadgen: offers load to a job broker, checks every reply, prints one line of JSON.
 *
 *   loadgen --protocol disque|list|stream|beanstalk|amqp --port PORT --server-pid PID --mode add|get|cycle|churn --jobs N
 *           [--host 127.0.0.1] [--connections 50] [--workers 40] [--pipeline 1] [--fetch 1] [--first 0] [--queues 1]
 *           [--body-bytes 64] [--rate JOBS_PER_S] [--window-ms MS] [--time-limit SECONDS] [--worker-port PORT]
 *           [--add-options "REPLICATE 3 RETRY 60"] [--ack-command ACKJOB|FASTACK] [--tls]
 *
 * `get` expects the jobs 0 to N-1 of an earlier `add` with the same --jobs; `churn` continues behind --first. A stream
 * needs its group first: XGROUP CREATE q g 0 MKSTREAM. Exit status: 0 when every reply was right, 1 when one was not
 * (the line says which), 2 when nothing could be measured. With --window-ms the latency of adds is printed for each
 * window of that length as well: number, p50, p99 and maximum.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ledger.h"
#include "run.h"

static const struct protocol *const PROTOCOLS[] = {&disque, &redis_list, &redis_stream, &beanstalkd, &amqp};
static const char *const MODES[] = {"add", "get", "cycle", "churn"};

static void refuse(const char *message, const char *value) {
    fprintf(stderr, "loadgen: %s: '%s'\n", message, value);
    exit(2);
}

static const struct protocol *protocol_named(const char *name) {
    for (size_t i = 0; i < sizeof PROTOCOLS / sizeof *PROTOCOLS; i++) {
        if (strcmp(PROTOCOLS[i]->name, name) == 0) {
            return PROTOCOLS[i];
        }
    }
    refuse("--protocol must be disque, list, stream, beanstalk or amqp", name);
    return NULL;
}

static enum mode mode_named(const char *name) {
    for (size_t i = 0; i < sizeof MODES / sizeof *MODES; i++) {
        if (strcmp(MODES[i], name) == 0) {
            return (enum mode)i;
        }
    }
    refuse("--mode must be add, get, cycle or churn", name);
    return MODE_ADD;
}

static double number(const char *text) {
    char *end;
    double value = strtod(text, &end);
    if (*text == '\0' || *end != '\0' || value < 0) {
        refuse("not a number of zero or more", text);
    }
    return value;
}

/* Refuse what could not be measured or would be measured wrongly. */
static void check(const struct options *options) {
    const struct protocol *protocol = options->protocol;
    if (options->port == 0 || options->server_pid == 0 || options->jobs == 0) {
        refuse("--port, --server-pid and --jobs are needed", protocol->name);
    }
    if (options->fetch < 1 || options->fetch > protocol->fetch_max) {
        refuse("--fetch is out of this protocol's range", protocol->name);
    }
    if (options->queues < 1 || (options->queues > 1 && !protocol->many_queues)) {
        refuse("--queues: one queue only with this protocol", protocol->name);
    }
    if (options->queues > 1 && options->mode != MODE_ADD && options->mode != MODE_CHURN) {
        refuse("--queues works with the modes add and churn", MODES[options->mode]);
    }
    if (options->mode == MODE_CYCLE && (options->workers < 1 || options->workers >= options->connections)) {
        refuse("--workers must leave a producer and be at least 1", MODES[options->mode]);
    }
    if (options->rate > 0 && options->mode != MODE_ADD && options->mode != MODE_CYCLE) {
        refuse("--rate works with the modes add and cycle", MODES[options->mode]);
    }
    if (options->window_ms > 0 && options->rate == 0) {
        refuse("--window-ms needs a --rate", protocol->name);
    }
    if (options->pipeline > 1 && protocol->one_at_a_time) {
        refuse("--pipeline: one add at a time with this protocol", protocol->name);
    }
    if (options->body_bytes < NUMBER_DIGITS) {
        refuse("--body-bytes must be 16 or more", "");
    }
    if (options->tls && protocol->open_session != NULL) {
        refuse("--tls does not work with this protocol", protocol->name);
    }
    if (options->connections < 1 || options->pipeline < 1) {
        refuse("--connections and --pipeline must be 1 or more", "");
    }
}

static struct options parse(int count, char **words) {
    static const struct option names[] = {
        {"protocol", required_argument, NULL, 'x'},    {"mode", required_argument, NULL, 'm'},
        {"host", required_argument, NULL, 'h'},        {"port", required_argument, NULL, 'p'},
        {"server-pid", required_argument, NULL, 's'},  {"connections", required_argument, NULL, 'c'},
        {"workers", required_argument, NULL, 'w'},     {"pipeline", required_argument, NULL, 'P'},
        {"fetch", required_argument, NULL, 'k'},       {"jobs", required_argument, NULL, 'n'},
        {"first", required_argument, NULL, 'f'},       {"queues", required_argument, NULL, 'q'},
        {"body-bytes", required_argument, NULL, 'b'},  {"rate", required_argument, NULL, 'r'},
        {"time-limit", required_argument, NULL, 't'},  {"add-options", required_argument, NULL, 'o'},
        {"ack-command", required_argument, NULL, 'a'}, {"worker-port", required_argument, NULL, 'W'},
        {"window-ms", required_argument, NULL, 'i'},   {"tls", no_argument, NULL, 'T'},
        {NULL, 0, NULL, 0},
    };
    struct options options = {.protocol = &disque, .host = "127.0.0.1", .connections = 50, .workers = 40, .pipeline = 1,
                              .fetch = 1, .queues = 1, .body_bytes = 64, .time_limit_s = 120};
    const char *add_options = "", *ack_command = "ACKJOB";
    for (int name; (name = getopt_long(count, words, "", names, NULL)) != -1;) {
        switch (name) {
            case 'x': options.protocol = protocol_named(optarg); break;
            case 'm': options.mode = mode_named(optarg); break;
            case 'h': options.host = optarg; break;
            case 'p': options.port = (int)number(optarg); break;
            case 's': options.server_pid = (int)number(optarg); break;
            case 'c': options.connections = (int)number(optarg); break;
            case 'w': options.workers = (int)number(optarg); break;
            case 'P': options.pipeline = (int)number(optarg); break;
            case 'k': options.fetch = (int)number(optarg); break;
            case 'n': options.jobs = (long)number(optarg); break;
            case 'f': options.first = (long)number(optarg); break;
            case 'q': options.queues = (long)number(optarg); break;
            case 'b': options.body_bytes = (int)number(optarg); break;
            case 'r': options.rate = number(optarg); break;
            case 'i': options.window_ms = (long)number(optarg); break;
            case 't': options.time_limit_s = number(optarg); break;
            case 'T': options.tls = true; break;
            case 'W': options.worker_port = (int)number(optarg); break;
            case 'o': add_options = optarg; break;
            case 'a': ack_command = optarg; break;
            default: exit(2);
        }
    }
    if (optind < count) {
        refuse("unexpected argument", words[optind]);
    }
    if (options.worker_port == 0) {
        options.worker_port = options.port;
    }
    if (options.mode != MODE_CYCLE) {
        options.workers = 0;
    }
    check(&options);
    disque_configure(add_options, ack_command);
    return options;
}

static void print_latency(const char *name, const struct histogram *histogram) {
    printf("\"%s\": {\"count\": %lu, \"p50\": %.1f, \"p99\": %.1f, \"p999\": %.1f, \"max\": %.1f}", name,
           (unsigned long)histogram->count, (double)histogram_quantile(histogram, 0.5) / 1e3,
           (double)histogram_quantile(histogram, 0.99) / 1e3, (double)histogram_quantile(histogram, 0.999) / 1e3,
           (double)histogram->max_ns / 1e3);
}

/* By windows of time: how many adds, and their p50, p99 and maximum. */
static void print_windows(const struct result *result) {
    printf("\"start_ns\": %lu, \"windows\": [", (unsigned long)result->start_ns);
    for (long i = 0; i < result->window_count; i++) {
        const struct histogram *window = &result->windows[i];
        printf("%s[%lu, %.1f, %.1f, %.1f]", i > 0 ? ", " : "", (unsigned long)window->count,
               (double)histogram_quantile(window, 0.5) / 1e3, (double)histogram_quantile(window, 0.99) / 1e3,
               (double)window->max_ns / 1e3);
    }
    printf("], ");
}

int main(int count, char **words) {
    static struct result result;
    struct options options = parse(count, words);
    run(&options, &result);
    double done = result.done > 0 ? (double)result.done : 1;
    printf("{\"protocol\": \"%s\", \"mode\": \"%s\", \"jobs\": %ld, \"seconds\": %.6f, \"jobs_per_s\": %.1f, ",
           options.protocol->name, MODES[options.mode], result.done, result.seconds,
           (double)result.done / result.seconds);
    printf("\"server_cpu_us_per_job\": %.4f, \"server_busy\": %.3f, \"generator_busy\": %.3f, ",
           result.server_cpu_s * 1e6 / done, result.server_cpu_s / result.seconds,
           result.generator_cpu_s / result.seconds);
    print_windows(&result);
    printf("\"latency_us\": {");
    print_latency("add", &result.add);
    printf(", ");
    print_latency("fetch", &result.fetch);
    printf(", ");
    print_latency("ack", &result.ack);
    printf(", ");
    print_latency("delivery", &result.delivery);
    printf("}, \"errors\": %d, \"error\": \"%s\"}\n", result.error[0] != '\0', result.error);
    return result.error[0] != '\0';
}
