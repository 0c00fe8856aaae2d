/* A driver (with -DDRIVER) whose answer about what a pool or graphs keep is late: for the second thread that
   asks it is the one from before the first thread took memory. And a program of these two threads, which
   prints the MiB that the run holds afterwards, twice: by a pool and by a graph. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef uint64_t u64;

#ifdef DRIVER
#include <unistd.h>

static volatile u64 pool, graphs;
volatile int has_asked;
__thread int is_late;

static int late(volatile u64 *of, u64 *value) {
  *value = *of;
  if (is_late) { has_asked = 1; usleep(200000); }
  return 0;
}
int cuInit(unsigned flags) { return flags != 0; }
int cuCtxGetDevice(int *device) { *device = 0; return 0; }
int cuCtxGetCurrent(u64 *context) { *context = 16; return 0; }
int cuDeviceGetUuid_v2(uint8_t *uuid, int device) { memset(uuid, 1, 16); return device; }
int cuMemGetInfo_v2(u64 *free, u64 *total) { *free = *total = 8ull << 30; return 0; }
int cuDeviceGetMemPool(u64 *into, int device) { *into = 32; return device; }
int cuMemPoolGetAttribute(u64 of, int what, u64 *value) { return what == 5 ? late(&pool, value) : (*value = 0); }
int cuMemAllocAsync(u64 *into, u64 bytes, void *stream) { *into = 4096 + pool; pool += bytes; return 0; }
int cuStreamSynchronize(void *stream) { return 0; }
int cuGraphAddMemAllocNode(void **node, u64 graph, void *after, u64 count, void *what) { return 0; }
int cuGraphInstantiateWithFlags(u64 *into, u64 graph, u64 flags) { *into = graph; return 0; }
int cuGraphLaunch(u64 graph, void *stream) { graphs += graph << 20; return 0; }
int cuGraphUpload(u64 graph, void *stream) { return 0; }
int cuDeviceGetGraphMemAttribute(int device, int what, u64 *value) { return what == 2 ? late(&graphs, value) : (*value = 0); }
#else
#include <dlfcn.h>
#include <pthread.h>

static void *cuda;
#define FIND(name, arguments) ((int (*) arguments)dlsym(cuda, #name))

static void *count(void *what) {
  *(int *)dlsym(cuda, "is_late") = 1;
  if (what) FIND(cuGraphUpload, (u64, void *))(2, 0); else FIND(cuStreamSynchronize, (void *))(0);
  return 0;
}

int main(void) {
  cuda = dlopen("libcuda.so.1", RTLD_NOW);
  volatile int *has_asked = dlsym(cuda, "has_asked");
  int (*take)(u64 *, u64, void *) = FIND(cuMemAllocAsync, (u64 *, u64, void *)), (*launch)(u64, void *) = FIND(cuGraphLaunch, (u64, void *));
  struct { uint32_t kind, handles, type; int id; uint8_t rest[72]; u64 access[2], bytes, address; } node;
  u64 at, free_bytes, total, wrong = take(&at, 1 << 20, 0);
  memset(&node, 0, sizeof node); node.type = 1; node.bytes = 1 << 20;
  void *added;
  wrong |= FIND(cuGraphAddMemAllocNode, (void **, u64, void *, u64, void *))(&added, 1, 0, 0, &node);
  wrong |= FIND(cuGraphInstantiateWithFlags, (u64 *, u64, u64))(&at, 1, 0) | launch(1, 0);
  for (u64 what = 0; what < 2; what++) {
    pthread_t thread;
    *has_asked = 0;
    pthread_create(&thread, 0, count, (void *)what);
    while (!*has_asked) {}
    wrong |= what ? launch(8, 0) : take(&at, 4 << 20, 0);
    pthread_join(thread, 0);
    FIND(cuMemGetInfo_v2, (u64 *, u64 *))(&free_bytes, &total);
    printf("%lu of %lu MiB%s\n", (unsigned long)((total - free_bytes) >> 20), (unsigned long)(total >> 20), wrong ? ", and something failed" : "");
  }
  return 0;
}
#endif
