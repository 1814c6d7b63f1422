// One connection after another to servers of HTTP, by libcurl; on Linux only.
#pragma once

#if defined(__linux__)
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ctidemark_http ctidemark_http;

typedef struct {
  const char *method;
  const char *url;
  // Lines "Name: value", each with a zero behind it, and one more zero at the end.
  const char *headers;
  const uint8_t *body;
  size_t body_bytes;
} ctidemark_http_request;

// Both return 0 to end the exchange.
typedef struct {
  void *context;
  // A line of the answer's head with its end: status, headers and the empty line; also of interim
  // answers before it, such as 100's, and of trailers; not of a proxy's answer to CONNECT.
  int (*line)(void *context, const uint8_t *bytes, size_t count);
  int (*body)(void *context, const uint8_t *bytes, size_t count);
} ctidemark_http_receiver;

enum {
  ctidemark_http_done = 0,
  ctidemark_http_failed = 1,
  // The receiver has had enough.
  ctidemark_http_ended = 2,
  ctidemark_http_cancelled = 3,
};

// NULL when there is no memory.
ctidemark_http *ctidemark_http_create(void);

// Nobody may be performing.
void ctidemark_http_destroy(ctidemark_http *http);

// Sends a request and hands on the answer; waits until it has ended. Writes what went wrong, with a
// zero behind it, when the result is `failed`.
int ctidemark_http_perform(ctidemark_http *http, const ctidemark_http_request *request,
                           const ctidemark_http_receiver *receiver, char *error,
                           size_t error_bytes);

// Whether TLS said that its connection ends, and was not cut off, in what was performed last; never
// where libcurl has another library for it than OpenSSL.
bool ctidemark_http_heard_close(const ctidemark_http *http);

// Ends what is being performed, and whatever will be, from any thread.
void ctidemark_http_cancel(ctidemark_http *http);
#endif
