#if defined(__linux__)
#define _GNU_SOURCE
#endif
#include "ctidemark.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

struct ctidemark_monitor {
  pthread_mutex_t mutex;
  pthread_cond_t condition;
};

// These calls fail only when they are used wrongly; going on would corrupt the state behind them.
static void must(int result) {
  if (result != 0) abort();
}

ctidemark_monitor *ctidemark_monitor_create(void) {
  ctidemark_monitor *monitor = malloc(sizeof *monitor);
  if (monitor == NULL) return NULL;
  must(pthread_mutex_init(&monitor->mutex, NULL));
#if defined(__APPLE__)
  must(pthread_cond_init(&monitor->condition, NULL));
#else
  // Waiting must not depend on somebody setting the time of day.
  pthread_condattr_t attributes;
  must(pthread_condattr_init(&attributes));
  must(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC));
  must(pthread_cond_init(&monitor->condition, &attributes));
  pthread_condattr_destroy(&attributes);
#endif
  return monitor;
}

void ctidemark_monitor_destroy(ctidemark_monitor *monitor) {
  pthread_cond_destroy(&monitor->condition);
  pthread_mutex_destroy(&monitor->mutex);
  free(monitor);
}

void ctidemark_monitor_lock(ctidemark_monitor *monitor) {
  must(pthread_mutex_lock(&monitor->mutex));
}

void ctidemark_monitor_unlock(ctidemark_monitor *monitor) {
  must(pthread_mutex_unlock(&monitor->mutex));
}

void ctidemark_monitor_wait(ctidemark_monitor *monitor) {
  must(pthread_cond_wait(&monitor->condition, &monitor->mutex));
}

void ctidemark_monitor_wait_for(ctidemark_monitor *monitor, uint64_t nanoseconds) {
  const uint64_t second = 1000000000;
  // Callers wait again if need be; a bound keeps the sum below from overflowing.
  if (nanoseconds > 86400 * second) nanoseconds = 86400 * second;
  struct timespec time;
#if defined(__APPLE__)
  time.tv_sec = (time_t)(nanoseconds / second);
  time.tv_nsec = (long)(nanoseconds % second);
  int result =
      pthread_cond_timedwait_relative_np(&monitor->condition, &monitor->mutex, &time);
#else
  clock_gettime(CLOCK_MONOTONIC, &time);
  uint64_t sum = (uint64_t)time.tv_nsec + nanoseconds;
  time.tv_sec += (time_t)(sum / second);
  time.tv_nsec = (long)(sum % second);
  int result = pthread_cond_timedwait(&monitor->condition, &monitor->mutex, &time);
#endif
  must(result == ETIMEDOUT ? 0 : result);
}

void ctidemark_monitor_signal(ctidemark_monitor *monitor) {
  must(pthread_cond_signal(&monitor->condition));
}

void ctidemark_monitor_broadcast(ctidemark_monitor *monitor) {
  must(pthread_cond_broadcast(&monitor->condition));
}

struct ctidemark_thread {
  pthread_t identifier;
};

struct start {
  void (*body)(void *);
  void *argument;
  int yields;
  char name[64];
};

// Lets every other thread of the process go first. That is a courtesy, so failures do not matter.
static void yield_to_others(void) {
#if defined(__APPLE__)
  pthread_set_qos_class_self_np(QOS_CLASS_UTILITY, 0);
#elif defined(__linux__)
  // Linux sets the calling thread's value; threads that it starts inherit that.
  setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + 10);
#endif
}

static void *run(void *argument) {
  struct start start = *(struct start *)argument;
  free(argument);
#if defined(__APPLE__)
  pthread_setname_np(start.name);
#elif defined(__linux__)
  start.name[15] = 0;  // Linux refuses longer names
  pthread_setname_np(pthread_self(), start.name);
#endif
  // A peer that closes a connection must not end the process.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &signals, NULL);
  if (start.yields) yield_to_others();
  start.body(start.argument);
  return NULL;
}

int ctidemark_thread_start(const char *name, size_t stack_bytes, int yields,
                           void (*body)(void *), void *argument, ctidemark_thread **thread) {
  struct ctidemark_thread *handle = malloc(sizeof *handle);
  struct start *start = calloc(1, sizeof *start);
  pthread_attr_t attributes;
  int result = handle == NULL || start == NULL ? ENOMEM : pthread_attr_init(&attributes);
  if (result == 0) {
    start->body = body;
    start->argument = argument;
    start->yields = yields;
    strncpy(start->name, name, sizeof start->name - 1);
    result = pthread_attr_setstacksize(&attributes, stack_bytes);
    if (result == 0) result = pthread_create(&handle->identifier, &attributes, run, start);
    pthread_attr_destroy(&attributes);
  }
  if (result != 0) {
    free(handle);
    free(start);
    return result;
  }
  *thread = handle;
  return 0;
}

void ctidemark_thread_join(ctidemark_thread *thread) {
  must(pthread_join(thread->identifier, NULL));
  free(thread);
}

void ctidemark_thread_detach(ctidemark_thread *thread) {
  pthread_detach(thread->identifier);
  free(thread);
}
