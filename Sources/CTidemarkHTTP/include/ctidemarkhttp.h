// One connection after another to servers of HTTP, by libcurl; on Linux only.
#pragma once

#if defined(__linux__)
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
  // A line of the answer's head with its end: status, headers and the empty line; also of heads
  // before the answer's, such as 100's, and of trailers.
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

// Ends what is being performed, and whatever will be, from any thread.
void ctidemark_http_cancel(ctidemark_http *http);
#endif
