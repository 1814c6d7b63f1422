#ifndef TIDEMARK_CPOSTGRES_SHIM_H
#define TIDEMARK_CPOSTGRES_SHIM_H

#include <errno.h>
#include <libpq-fe.h>
#include <poll.h>

/// Waits until a connection's socket can be read or, where asked for, written.
/// - Returns: bit 0 where it can be read, bit 1 where it can be written; 0 after the time, or where
///   a signal came; -1 where there is no socket, or it cannot be waited for.
static inline int tidemark_pg_wait(PGconn *connection, int read, int write, int milliseconds) {
  struct pollfd place = {PQsocket(connection), 0, 0};
  if (place.fd < 0) return -1;
  place.events = (short)((read ? POLLIN : 0) | (write ? POLLOUT : 0));
  int count = poll(&place, 1, milliseconds);
  if (count < 0) return errno == EINTR ? 0 : -1;
  // A socket that was closed counts as readable: the read tells what happened.
  return ((place.revents & ~POLLOUT) ? 1 : 0) | ((place.revents & POLLOUT) ? 2 : 0);
}

#endif
