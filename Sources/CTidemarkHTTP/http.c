// For RTLD_DEFAULT.
#define _GNU_SOURCE
#include "ctidemarkhttp.h"

#if defined(__linux__)
#if !__has_include(<curl/curl.h>)
#error "libcurl's headers are needed: apt install libcurl4-openssl-dev, or libcurl-devel"
#endif
#include <curl/curl.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ctidemark_http {
  // The only use made of `curl_multi` is that waiting can be ended from outside.
  CURLM *multi;
  CURL *easy;
  atomic_bool is_cancelled;
  bool heard_close;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static CURLcode prepared;

// libcurl takes the end of a connection for the end of an answer without length, also where TLS did
// not say `close_notify`, so that whoever cuts a connection shortens an answer. OpenSSL tells of that
// alert. libcurl has loaded it; linking it here, too, would bind programs to libcurl's choice.
typedef void (*set_info_callback)(void *context, void (*callback)(const void *, int, int));
static set_info_callback set_info;
// Libraries of TLS run on the thread that performs.
static _Thread_local bool heard_close;
static void take_info(const void *ssl, int where, int value) {
  (void)ssl;
  const int read_alert = 0x4004, close_notify = 0;
  if (where == read_alert && (value & 0xff) == close_notify) heard_close = true;
}
static CURLcode listen_for_close(CURL *easy, void *context, void *data) {
  (void)easy, (void)data;
  set_info(context, take_info);
  return CURLE_OK;
}

bool ctidemark_http_heard_close(const ctidemark_http *http) { return http->heard_close; }

static void prepare(void) {
  prepared = curl_global_init(CURL_GLOBAL_DEFAULT);
  const char *tls = curl_version_info(CURLVERSION_NOW)->ssl_version;
  // Others have contexts of other types.
  if (tls != NULL && strncmp(tls, "OpenSSL/", 8) == 0)
    set_info = (set_info_callback)dlsym(RTLD_DEFAULT, "SSL_CTX_set_info_callback");
}

ctidemark_http *ctidemark_http_create(void) {
  pthread_once(&once, prepare);
  ctidemark_http *http = prepared == CURLE_OK ? calloc(1, sizeof *http) : NULL;
  if (http == NULL) return NULL;
  http->multi = curl_multi_init();
  http->easy = curl_easy_init();
  if (http->multi == NULL || http->easy == NULL) {
    ctidemark_http_destroy(http);
    return NULL;
  }
  return http;
}

void ctidemark_http_destroy(ctidemark_http *http) {
  if (http->easy != NULL) curl_easy_cleanup(http->easy);
  if (http->multi != NULL) curl_multi_cleanup(http->multi);
  free(http);
}

void ctidemark_http_cancel(ctidemark_http *http) {
  atomic_store(&http->is_cancelled, true);
  curl_multi_wakeup(http->multi);
}

static size_t take_line(char *bytes, size_t size, size_t count, void *context) {
  const ctidemark_http_receiver *receiver = context;
  size_t all = size * count;
  return receiver->line(receiver->context, (const uint8_t *)bytes, all) ? all : 0;
}

static size_t take_body(char *bytes, size_t size, size_t count, void *context) {
  const ctidemark_http_receiver *receiver = context;
  size_t all = size * count;
  return receiver->body(receiver->context, (const uint8_t *)bytes, all) ? all : 0;
}

static struct curl_slist *add(struct curl_slist *list, const char *line, int *is_whole) {
  struct curl_slist *longer = curl_slist_append(list, line);
  if (longer == NULL) *is_whole = 0;
  return longer == NULL ? list : longer;
}

static CURLcode set_up(CURL *easy, const ctidemark_http_request *request,
                       const ctidemark_http_receiver *receiver, struct curl_slist *headers,
                       char *message) {
  CURLcode result = CURLE_OK;
#define SET(option, value) \
  if (result == CURLE_OK) result = curl_easy_setopt(easy, option, value)
  // Keeps connections and what is known of names.
  curl_easy_reset(easy);
  SET(CURLOPT_ERRORBUFFER, message);
  SET(CURLOPT_URL, request->url);
#if LIBCURL_VERSION_NUM >= 0x075500
  SET(CURLOPT_PROTOCOLS_STR, "http,https");
#else
  SET(CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
  SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
  // Threads have no use for signals; those of this package hold SIGPIPE back.
  SET(CURLOPT_NOSIGNAL, 1L);
  SET(CURLOPT_TCP_KEEPALIVE, 1L);
  // OpenSSL, Python, Go and the program curl look at these; libcurl does not.
  const char *authorities = getenv("SSL_CERT_FILE");
  if (authorities != NULL && authorities[0] != 0) SET(CURLOPT_CAINFO, authorities);
  if (set_info != NULL) SET(CURLOPT_SSL_CTX_FUNCTION, listen_for_close);
  SET(CURLOPT_HTTPHEADER, headers);
  // A proxy's answer to CONNECT is none of the server's.
  SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  SET(CURLOPT_HEADERFUNCTION, take_line);
  SET(CURLOPT_HEADERDATA, receiver);
  SET(CURLOPT_WRITEFUNCTION, take_body);
  SET(CURLOPT_WRITEDATA, receiver);
  if (strcmp(request->method, "GET") == 0) {
    SET(CURLOPT_HTTPGET, 1L);
  } else if (strcmp(request->method, "HEAD") == 0) {
    // With a body asked for, the line would wait for one that never comes.
    SET(CURLOPT_NOBODY, 1L);
  } else {
    SET(CURLOPT_POST, 1L);
    SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_bytes);
    SET(CURLOPT_POSTFIELDS, request->body_bytes == 0 ? "" : (const char *)request->body);
    SET(CURLOPT_CUSTOMREQUEST, request->method);
  }
#undef SET
  return result;
}

static int exchange(ctidemark_http *http, CURLcode *result) {
  while (!atomic_load(&http->is_cancelled)) {
    int running = 0, left = 0;
    if (curl_multi_perform(http->multi, &running) != CURLM_OK) break;
    const CURLMsg *message = curl_multi_info_read(http->multi, &left);
    if (message != NULL && message->msg == CURLMSG_DONE) {
      *result = message->data.result;
      return *result == CURLE_OK ? ctidemark_http_done : ctidemark_http_failed;
    }
    if (curl_multi_poll(http->multi, NULL, 0, 60000, NULL) != CURLM_OK) break;
  }
  return atomic_load(&http->is_cancelled) ? ctidemark_http_cancelled : ctidemark_http_failed;
}

int ctidemark_http_perform(ctidemark_http *http, const ctidemark_http_request *request,
                           const ctidemark_http_receiver *receiver, char *error,
                           size_t error_bytes) {
  char message[CURL_ERROR_SIZE] = "";
  int is_whole = 1;
  // No waiting for a 100, and no type that the caller has not given.
  struct curl_slist *headers = add(NULL, "Expect:", &is_whole);
  headers = add(headers, "Content-Type:", &is_whole);
  for (const char *line = request->headers; *line != 0; line += strlen(line) + 1)
    headers = add(headers, line, &is_whole);
  CURLcode result = is_whole ? set_up(http->easy, request, receiver, headers, message)
                             : CURLE_OUT_OF_MEMORY;
  int outcome = ctidemark_http_failed;
  if (result == CURLE_OK) {
    if (curl_multi_add_handle(http->multi, http->easy) == CURLM_OK) {
      heard_close = false;
      outcome = exchange(http, &result);
      http->heard_close = heard_close;
      curl_multi_remove_handle(http->multi, http->easy);
    } else {
      result = CURLE_FAILED_INIT;
    }
  }
  curl_slist_free_all(headers);
  // The buffer is this function's.
  curl_easy_setopt(http->easy, CURLOPT_ERRORBUFFER, NULL);
  if (outcome == ctidemark_http_failed && result == CURLE_WRITE_ERROR)
    outcome = ctidemark_http_ended;
  snprintf(error, error_bytes, "%s", message[0] != 0 ? message : curl_easy_strerror(result));
  return outcome;
}
#endif
