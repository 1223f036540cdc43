/* See connection.h. */
#include "connection.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_BYTES = 16 * 1024 };

static void watch(struct connection *connection, int epoll, int operation) {
    struct epoll_event event = {.events = EPOLLIN | (connection->wants_writable ? EPOLLOUT : 0u),
                                .data.ptr = connection};
    if (epoll_ctl(epoll, operation, connection->fd, &event) != 0) {
        perror("loadgen: epoll_ctl");
        exit(2);
    }
}

static void refuse_tls(void) {
    fputs("loadgen: TLS failed\n", stderr);
    ERR_print_errors_fp(stderr);
    exit(2);
}

SSL_CTX *connection_tls(void) {
    SSL_CTX *settings = SSL_CTX_new(TLS_client_method());
    if (settings == NULL || SSL_CTX_set_min_proto_version(settings, TLS1_3_VERSION) != 1) {
        refuse_tls();
    }
    SSL_CTX_set_mode(settings, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_read_ahead(settings, 1); /* one system call for a record, not one for its head and one for its rest */
    signal(SIGPIPE, SIG_IGN);            /* OpenSSL writes without MSG_NOSIGNAL */
    return settings;
}

static void shake_hands(struct connection *connection, SSL_CTX *settings) {
    connection->tls = SSL_new(settings);
    if (connection->tls == NULL || SSL_set_fd(connection->tls, connection->fd) != 1 ||
        SSL_connect(connection->tls) != 1) {
        refuse_tls();
    }
}

void connection_open(struct connection *connection, int epoll, const struct protocol *protocol, const char *host,
                     int port, SSL_CTX *tls, int window, int fetch) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, host, &address.sin_addr) != 1) {
        fprintf(stderr, "loadgen: '%s' is not an IPv4 address\n", host);
        exit(2);
    }
    connection->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connection->fd < 0 || connect(connection->fd, (struct sockaddr *)&address, sizeof address) != 0) {
        fprintf(stderr, "loadgen: cannot connect to %s:%d: %s\n", host, port, strerror(errno));
        exit(2);
    }
    int on = 1;
    setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (tls != NULL) {
        shake_hands(connection, tls);
    } else if (protocol->open_session != NULL) {
        protocol->open_session(connection->fd, connection->worker);
    }
    fcntl(connection->fd, F_SETFL, O_NONBLOCK);
    unsigned slots = 1;
    while (slots < (unsigned)window) {
        slots *= 2;
    }
    connection->due_mask = slots - 1;
    connection->due_ns = calloc(slots, sizeof *connection->due_ns);
    connection->ids = calloc((size_t)fetch, sizeof *connection->ids);
    if (connection->due_ns == NULL || connection->ids == NULL) {
        perror("loadgen: connection");
        exit(2);
    }
    watch(connection, epoll, EPOLL_CTL_ADD);
}

/* How many bytes OpenSSL moved: 0 if the socket has no room or no whole record, -1 if the connection is lost. */
static ssize_t moved(SSL *tls, int count) {
    if (count > 0) {
        return count;
    }
    int reason = SSL_get_error(tls, count);
    return reason == SSL_ERROR_WANT_READ || reason == SSL_ERROR_WANT_WRITE ? 0 : -1;
}

/* Send some bytes. Returns how many; 0 if there is no room now, -1 if the connection is lost. */
static ssize_t put(struct connection *connection, const char *data, size_t size) {
    if (connection->tls != NULL) {
        return moved(connection->tls, SSL_write(connection->tls, data, (int)size));
    }
    ssize_t sent = send(connection->fd, data, size, MSG_NOSIGNAL);
    return sent < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : sent;
}

/* Receive some bytes. Returns how many; 0 if nothing is there now, -1 if the connection is lost. */
static ssize_t take(struct connection *connection, char *room, size_t size) {
    if (connection->tls != NULL) {
        return moved(connection->tls, SSL_read(connection->tls, room, (int)size));
    }
    ssize_t got = recv(connection->fd, room, size, 0);
    if (got < 0) {
        return errno == EAGAIN || errno == EINTR ? 0 : -1;
    }
    return got == 0 ? -1 : got;
}

bool connection_flush(struct connection *connection, int epoll) {
    struct buffer *out = &connection->out;
    while (out->start < out->end) {
        ssize_t sent = put(connection, out->data + out->start, out->end - out->start);
        if (sent < 0) {
            return false;
        }
        if (sent == 0) {
            break;
        }
        buffer_consume(out, (size_t)sent);
    }
    bool unsent = out->start < out->end;
    if (unsent != connection->wants_writable) {
        connection->wants_writable = unsent;
        watch(connection, epoll, EPOLL_CTL_MOD);
    }
    return true;
}

bool connection_fill(struct connection *connection) {
    do { /* epoll does not know what OpenSSL has read already */
        char *room = buffer_reserve(&connection->in, READ_BYTES);
        ssize_t got = take(connection, room, READ_BYTES);
        if (got < 0) {
            return false;
        }
        if (got == 0) {
            return true;
        }
        connection->in.end += (size_t)got;
    } while (connection->tls != NULL && SSL_has_pending(connection->tls));
    return true;
}
