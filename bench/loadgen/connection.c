/* See connection.h. */
#include "connection.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
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

void connection_open(struct connection *connection, int epoll, const struct protocol *protocol, const char *host,
                     int port, int window, int fetch) {
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
    if (protocol->open_session != NULL) {
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

bool connection_flush(struct connection *connection, int epoll) {
    struct buffer *out = &connection->out;
    while (out->start < out->end) {
        ssize_t sent = send(connection->fd, out->data + out->start, out->end - out->start, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent < 0 && errno != EAGAIN) {
            return false;
        }
        if (sent < 0) {
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
    char *room = buffer_reserve(&connection->in, READ_BYTES);
    ssize_t got = recv(connection->fd, room, READ_BYTES, 0);
    if (got > 0) {
        connection->in.end += (size_t)got;
    }
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}
