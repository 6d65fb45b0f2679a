// A library to preload. It slows the reads of regular files whose path contains the text
// $THROTTLE_PATH down to $THROTTLE_BYTES_PER_S, for each process. A read returns when the bytes of
// all reads so far have arrived from a storage of that rate. So that many small reads attain the
// rate too, a read does not wait for less than 2 ms, and a storage that idled for less than 10 ms
// makes up for it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static double free_at;  // when the storage has delivered all that was asked for so far

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static ssize_t (*next_read)(int, void*, size_t);
static ssize_t (*next_pread)(int, void*, size_t, off_t);
static ssize_t (*next_pread64)(int, void*, size_t, off64_t);

__attribute__((constructor)) static void find_next(void) {
  next_read = NEXT(read);
  next_pread = NEXT(pread);
  next_pread64 = NEXT(pread64);
}

// By descriptor, the file that was looked up last, and whether it is slow.
enum { most_descriptors = 1024 };
static struct {
  ino_t file;
  int slow;
} known[most_descriptors];

static int has_slow_path(int descriptor) {
  const char* wanted = getenv("THROTTLE_PATH");
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (!wanted || length < 0) return 0;
  path[length] = 0;
  return strstr(path, wanted) != NULL;
}

static int is_slow(int descriptor) {
  struct stat now;
  if (descriptor < 0 || descriptor >= most_descriptors || fstat(descriptor, &now) != 0) return 0;
  if (!S_ISREG(now.st_mode)) return 0;
  if (known[descriptor].file != now.st_ino) {
    known[descriptor].file = now.st_ino;
    known[descriptor].slow = has_slow_path(descriptor);
  }
  return known[descriptor].slow;
}

static ssize_t delayed(int descriptor, ssize_t bytes) {
  if (bytes <= 0 || !is_slow(descriptor)) return bytes;
  const char* rate = getenv("THROTTLE_BYTES_PER_S");
  if (!rate) return bytes;
  pthread_mutex_lock(&mutex);
  const double begin = now();
  if (free_at < begin - 10e-3) free_at = begin;
  free_at += (double)bytes / atof(rate);
  const double end = free_at;
  pthread_mutex_unlock(&mutex);
  if (end < begin + 2e-3) return bytes;
  const struct timespec until = {(time_t)end, (long)((end - (double)(time_t)end) * 1e9)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) != 0) {
  }
  return bytes;
}

ssize_t read(int descriptor, void* into, size_t count) {
  return delayed(descriptor, next_read(descriptor, into, count));
}
ssize_t pread(int descriptor, void* into, size_t count, off_t offset) {
  return delayed(descriptor, next_pread(descriptor, into, count, offset));
}
ssize_t pread64(int descriptor, void* into, size_t count, off64_t offset) {
  return delayed(descriptor, next_pread64(descriptor, into, count, offset));
}
