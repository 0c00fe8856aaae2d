/* A program that uses the CUDA driver and NVML as its arguments say, and prints what it gets. The
   first argument is how it finds functions: "plt" (it is linked with libcuda), "dlsym", "dlvsym",
   "address" (cuGetProcAddress), "old" (its first form) or "threads" (the newer one, with the default
   stream of each thread),
   or dlsym on a library that was loaded with RTLD_DEEPBIND or into a namespace of its own. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef MUSL /* which has none of these */
#define dlvsym(library, name, version) dlsym(library, name)
#define dlmopen(space, name, flags) dlopen(name, flags)
#define RTLD_DEEPBIND 0
#endif

typedef uint64_t u64;
struct location { uint32_t type; int32_t id; };
struct properties { uint32_t type, handles; struct location at; void *none; uint8_t rest[64]; };
struct array3d { u64 width, height, depth; uint32_t format, channels, flags; };
struct array_map { u64 place[7]; uint32_t operation, kind; u64 handle, rest[3]; };
struct ipc { uint8_t bytes[64]; };
struct external { uint32_t type; u64 handle[2], bytes; uint32_t flags, reserved[16]; };
struct buffer { u64 offset, bytes; uint32_t flags, reserved[16]; };
struct node { struct properties pool; void *access; u64 count, bytes, address; };

#define FUNCTIONS(F) \
  F(cuInit, cuInit, 2000, (unsigned)) \
  F(cuDriverGetVersion, cuDriverGetVersion, 2020, (int *)) \
  F(cuCtxCreate, cuCtxCreate_v2, 3020, (void **, unsigned, int)) \
  F(cuCtxDestroy, cuCtxDestroy_v2, 4000, (void *)) \
  F(cuCtxSetCurrent, cuCtxSetCurrent, 4000, (void *)) \
  F(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000, (void **, int)) \
  F(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, 11000, (int)) \
  F(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2, 11000, (int)) \
  F(cuDeviceTotalMem, cuDeviceTotalMem_v2, 3020, (u64 *, int)) \
  F(cuDeviceGetAttribute, cuDeviceGetAttribute, 2000, (int *, int, int)) \
  F(cuMemGetInfo, cuMemGetInfo_v2, 3020, (u64 *, u64 *)) \
  F(cuMemAlloc, cuMemAlloc_v2, 3020, (u64 *, u64)) \
  F(cuMemFree, cuMemFree_v2, 3020, (u64)) \
  F(cuMemAllocPitch, cuMemAllocPitch_v2, 3020, (u64 *, u64 *, u64, u64, unsigned)) \
  F(cuMemAllocManaged, cuMemAllocManaged, 6000, (u64 *, u64, unsigned)) \
  F(cuMemHostAlloc, cuMemHostAlloc, 2020, (void **, u64, unsigned)) \
  F(cuMemAllocAsync, cuMemAllocAsync, 11020, (u64 *, u64, void *)) \
  F(cuMemFreeAsync, cuMemFreeAsync, 11020, (u64, void *)) \
  F(cuMemPoolCreate, cuMemPoolCreate, 11020, (void **, struct properties *)) \
  F(cuDeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool, 11020, (void **, int)) \
  F(cuMemPoolDestroy, cuMemPoolDestroy, 11020, (void *)) \
  F(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync, 11020, (u64 *, u64, void *, void *)) \
  F(cuMemGetDefaultMemPool, cuMemGetDefaultMemPool, 13000, (void **, struct location *, unsigned)) \
  F(cuMemGetMemPool, cuMemGetMemPool, 13000, (void **, struct location *, unsigned)) \
  F(cuStreamBeginRecaptureToGraph, cuStreamBeginRecaptureToGraph, 13030, (void *, unsigned, void *, void *, void *)) \
  F(cuCtxSynchronize, cuCtxSynchronize, 2000, (void)) \
  F(cuMemAddressReserve, cuMemAddressReserve, 10020, (u64 *, u64, u64, u64, u64)) \
  F(cuMemCreate, cuMemCreate, 10020, (u64 *, u64, struct properties *, u64)) \
  F(cuMemMap, cuMemMap, 10020, (u64, u64, u64, u64, u64)) \
  F(cuMemUnmap, cuMemUnmap, 10020, (u64, u64)) \
  F(cuMemRelease, cuMemRelease, 10020, (u64)) \
  F(cuMemExportToShareableHandle, cuMemExportToShareableHandle, 10020, (void *, u64, unsigned, u64)) \
  F(cuMemMapArrayAsync, cuMemMapArrayAsync, 11010, (struct array_map *, unsigned, void *)) \
  F(cuMemMapArrayAsync_ptsz, cuMemMapArrayAsync_ptsz, 11010, (struct array_map *, unsigned, void *)) \
  F(cuMulticastCreate, cuMulticastCreate, 12010, (u64 *, void *)) \
  F(cuMulticastBindMem, cuMulticastBindMem, 12010, (u64, u64, u64, u64, u64, u64)) \
  F(cuMulticastBindMem_v2, cuMulticastBindMem_v2, 13010, (u64, int, u64, u64, u64, u64, u64)) \
  F(cuMulticastBindAddr, cuMulticastBindAddr, 12010, (u64, u64, u64, u64, u64)) \
  F(cuMulticastBindAddr_v2, cuMulticastBindAddr_v2, 13010, (u64, int, u64, u64, u64, u64)) \
  F(cuLogicalEndpointBindMem, cuLogicalEndpointBindMem, 13030, (unsigned, int, u64, u64, u64, u64, u64)) \
  F(cuLogicalEndpointBindAddr, cuLogicalEndpointBindAddr, 13030, (unsigned, int, u64, u64, u64, u64)) \
  F(cuGreenCtxCreate, cuGreenCtxCreate, 12040, (void **, void *, int, unsigned)) \
  F(cuGreenCtxDestroy, cuGreenCtxDestroy, 12040, (void *)) \
  F(cuCtxFromGreenCtx, cuCtxFromGreenCtx, 12040, (void **, void *)) \
  F(cuIpcGetMemHandle, cuIpcGetMemHandle, 4010, (struct ipc *, u64)) \
  F(cuIpcOpenMemHandle, cuIpcOpenMemHandle_v2, 11000, (u64 *, struct ipc, unsigned)) \
  F(cuIpcCloseMemHandle, cuIpcCloseMemHandle, 4010, (u64)) \
  F(cuImportExternalMemory, cuImportExternalMemory, 10000, (void **, struct external *)) \
  F(cuExternalMemoryGetMappedBuffer, cuExternalMemoryGetMappedBuffer, 10000, (u64 *, void *, struct buffer *)) \
  F(cuDestroyExternalMemory, cuDestroyExternalMemory, 10000, (void *)) \
  F(cuMemsetD8, cuMemsetD8_v2, 3020, (u64, uint8_t, u64)) \
  F(cuStreamCreate, cuStreamCreate, 2000, (void **, unsigned)) \
  F(cuStreamDestroy, cuStreamDestroy_v2, 4000, (void *)) \
  F(cuStreamBeginCapture, cuStreamBeginCapture_v2, 10000, (void *, unsigned)) \
  F(cuStreamEndCapture, cuStreamEndCapture, 10000, (void *, void **)) \
  F(cuMemRetainAllocationHandle, cuMemRetainAllocationHandle, 11000, (u64 *, u64)) \
  F(cuArray3DCreate, cuArray3DCreate_v2, 3020, (void **, struct array3d *)) \
  F(cuArrayDestroy, cuArrayDestroy, 2000, (void *)) \
  F(cuMipmappedArrayCreate, cuMipmappedArrayCreate, 5000, (void **, struct array3d *, unsigned)) \
  F(cuMipmappedArrayDestroy, cuMipmappedArrayDestroy, 5000, (void *)) \
  F(cuGraphCreate, cuGraphCreate, 10000, (void **, unsigned)) \
  F(cuGraphAddMemAllocNode, cuGraphAddMemAllocNode, 11040, (void **, void *, void *, u64, struct node *)) \
  F(cuGraphAddNode, cuGraphAddNode_v2, 13040, (void **, void *, void *, void *, u64, void *)) \
  F(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, 11040, (void **, void *, u64)) \
  F(cuGraphLaunch, cuGraphLaunch, 10000, (void *, void *)) \
  F(cuDeviceGraphMemTrim, cuDeviceGraphMemTrim, 11040, (int)) \
  F(cuModuleLoadData, cuModuleLoadData, 2000, (void **, const void *)) \
  F(cuModuleGetFunction, cuModuleGetFunction, 2000, (void **, void *, const char *)) \
  F(cuLaunchKernel, cuLaunchKernel, 4000, (void *, unsigned, unsigned, unsigned, unsigned, \
    unsigned, unsigned, unsigned, void *, void *, void *)) \
  F(cuLaunchKernelEx, cuLaunchKernelEx, 11060, (void *, void *, void *, void *)) \
  F(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel, 9000, (void *, unsigned, unsigned, \
    unsigned, unsigned, unsigned, unsigned, unsigned, void *, void *))

#define DECLARE(name, symbol, version, arguments) static int (*p_##name) arguments;
FUNCTIONS(DECLARE)
#ifdef LINKED
#define PROTOTYPE(name, symbol, version, arguments) extern int symbol arguments;
FUNCTIONS(PROTOTYPE)
#endif

typedef int (*search_fn)(const char *, void **, int, u64, int *);

static void find(const char *how) {
#ifdef LINKED
#define LINK(name, symbol, version, arguments) p_##name = symbol;
  FUNCTIONS(LINK)
#else
  void *cuda = !strcmp(how, "namespace") ? dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW)
    : dlopen("libcuda.so.1", RTLD_NOW | (strcmp(how, "deepbind") ? 0 : RTLD_DEEPBIND));
  if (!cuda) { printf("no driver\n"); exit(3); }
  search_fn search = (search_fn)dlsym(cuda, "cuGetProcAddress_v2");
  int (*old)(const char *, void **, int, u64) = (int (*)(const char *, void **, int, u64))dlsym(cuda, "cuGetProcAddress");
  u64 flags = strcmp(how, "threads") ? 0 : 2;
  int by_name = !strcmp(how, "dlsym") || !strcmp(how, "deepbind") || !strcmp(how, "namespace"), by_version = !strcmp(how, "dlvsym");
#define SEARCH(name, symbol, version, arguments) \
  if (by_name) p_##name = (int (*) arguments)dlsym(cuda, #symbol); \
  else if (by_version) p_##name = (int (*) arguments)dlvsym(cuda, #symbol, "ANY"); \
  else if (!strcmp(how, "old")) { void *found = 0; old(#name, &found, version, 0); p_##name = (int (*) arguments)found; } \
  else { void *found = 0; int status; search(#name, &found, version, flags, &status); p_##name = (int (*) arguments)found; }
  FUNCTIONS(SEARCH)
#endif
}

static u64 stack[4096];
static int top;
static struct ipc shared;

static u64 number(const char **text) {
  char *end;
  u64 value = strtoull(*text, &end, 10);
  if (*end == 'K') { value <<= 10; end++; }
  if (*end == 'M') { value <<= 20; end++; }
  if (*end == 'G') { value <<= 30; end++; }
  *text = *end == ':' ? end + 1 : end;
  return value;
}

static struct properties on(uint32_t type, int id) {
  struct properties p;
  memset(&p, 0, sizeof p);
  p.type = 1; p.at.type = type; p.at.id = id;
  return p;
}

static void nvml(const char *what) {
  void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
  int (*init)(void) = (int (*)(void))dlsym(library, "nvmlInit_v2");
  int (*get)(unsigned, void **) = (int (*)(unsigned, void **))dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
  int (*memory)(void *, u64 *) = (int (*)(void *, u64 *))dlsym(library, "nvmlDeviceGetMemoryInfo");
  int (*memory2)(void *, void *) = (int (*)(void *, void *))dlsym(library, "nvmlDeviceGetMemoryInfo_v2");
  int (*list)(void *, unsigned *, void *) = (int (*)(void *, unsigned *, void *))dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v3");
  struct { uint32_t version; u64 total, reserved, free, used; } two;
  struct { uint32_t pid; u64 bytes; uint32_t a, b; } entries[64];
  void *device; u64 m[3]; unsigned count = 64;
  init();
  int found = get(0, &device);
  if (found) { printf("nvml %d\n", found); return; }
  if (!strcmp(what, "nvml")) {
    int result = memory(device, m);
    printf("nvml %d %lu %lu %lu\n", result, m[0] >> 20, m[1] >> 20, m[2] >> 20);
    memset(&two, 0, sizeof two); two.version = sizeof two | 2 << 24;
    result = memory2(device, &two);
    printf("nvml2 %d %lu %lu %lu %lu\n", result, two.total >> 20, two.reserved >> 20, two.free >> 20, two.used >> 20);
    two.version = 7;
    printf("nvml2 wrong %d\n", memory2(device, &two));
  } else {
    int result = list(device, &count, entries);
    printf("processes %d %u", result, count);
    for (unsigned i = 0; i < count; i++) printf(" %s:%lu", (int)entries[i].pid == getpid() ? "self" : "other", entries[i].bytes >> 20);
    unsigned none = 0;
    printf(" room %d\n", count ? list(device, &none, 0) : 7);
  }
}

/* What each function of NVML that shows or limits processes answers for a device. */
static void lists(unsigned index) {
  static const char *const counted[] = { "ComputeRunningProcesses", "ComputeRunningProcesses_v2", "ComputeRunningProcesses_v3",
    "GraphicsRunningProcesses", "GraphicsRunningProcesses_v2", "GraphicsRunningProcesses_v3",
    "MPSComputeRunningProcesses", "MPSComputeRunningProcesses_v2", "MPSComputeRunningProcesses_v3" };
  static const char *const others[] = { "GetRunningProcessDetailList", "GetProcessUtilization", "GetProcessesUtilizationInfo",
    "GetAccountingPids", "GetAccountingStats", "GetAccountingStats_v2", "SetMemoryLimits_v1" };
  void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW), *device; char name[96]; u64 entries[64];
  ((int (*)(unsigned, void **))dlsym(library, "nvmlDeviceGetHandleByIndex_v2"))(index, &device);
  printf("lists");
  for (unsigned i = 0; i < sizeof counted / sizeof *counted; i++) {
    unsigned count = 20; snprintf(name, sizeof name, "nvmlDeviceGet%s", counted[i]);
    int result = ((int (*)(void *, unsigned *, void *))dlsym(library, name))(device, &count, entries);
    printf(" %d:%u", result, count);
  }
  printf(" no count %d", ((int (*)(void *, unsigned *, void *))dlsym(library, name))(device, 0, entries));
  unsigned room = 20; printf(" no list %d", ((int (*)(void *, unsigned *, void *))dlsym(library, "nvmlDeviceGetComputeRunningProcesses_v3"))(device, &room, 0));
  for (unsigned i = 0; i < sizeof others / sizeof *others; i++) {
    unsigned count = 20; snprintf(name, sizeof name, "nvmlDevice%s", others[i]);
    printf(" %d", ((int (*)(void *, void *, void *, u64))dlsym(library, name))(device, &count, &count, 0));
  }
  printf("\n");
}

struct work { void *context; u64 turns; unsigned seed; int failed; };

static void *work(void *given) {
  struct work *w = given;
  u64 held[16] = { 0 };
  p_cuCtxSetCurrent(w->context);
  for (u64 i = 0; i < w->turns; i++) {
    unsigned at = rand_r(&w->seed) % 16;
    if (held[at]) { if (p_cuMemFree(held[at])) w->failed++; held[at] = 0; }
    else if (p_cuMemAlloc(&held[at], 1 + rand_r(&w->seed) % 100000)) { w->failed++; held[at] = 0; }
  }
  for (int at = 0; at < 16; at++) if (held[at] && p_cuMemFree(held[at])) w->failed++;
  return 0;
}

struct beside { void *context; u64 held[100000]; u64 count; int ends, failed; };

static void *take_beside(void *given) {
  struct beside *b = given;
  p_cuCtxSetCurrent(b->context);
  while (!__atomic_load_n(&b->ends, __ATOMIC_RELAXED) && b->count < sizeof b->held / sizeof *b->held)
    if (!p_cuMemAlloc(&b->held[b->count], 4096)) b->count++;
  while (b->count) if (p_cuMemFree(b->held[--b->count])) b->failed++;
  return 0;
}

static struct node node_on(int device, u64 bytes) {
  struct node n;
  memset(&n, 0, sizeof n);
  n.pool = on(1, device); n.bytes = bytes;
  return n;
}

static int handles_end;

static void *take_handles(void *context) {
  struct properties p = on(1, 0); u64 x; u64 failed = 0;
  p_cuCtxSetCurrent(context);
  while (!__atomic_load_n(&handles_end, __ATOMIC_RELAXED)) if (p_cuMemCreate(&x, 2 << 20, &p, 0) || p_cuMemRelease(x)) failed++;
  return (void *)failed;
}

/* a handle that is only mapped */
static int map_at(u64 at) {
  struct properties p = on(1, 0); u64 x;
  int r = p_cuMemCreate(&x, 2 << 20, &p, 0);
  if (!r) r = p_cuMemMap(at, 2 << 20, 0, x, 0);
  return r ? r : p_cuMemRelease(x);
}

static void *take_mapped(void *context) {
  u64 at; u64 failed = 0;
  p_cuCtxSetCurrent(context); p_cuMemAddressReserve(&at, 2 << 20, 0, 0, 0);
  while (!__atomic_load_n(&handles_end, __ATOMIC_RELAXED)) if (map_at(at) || p_cuMemUnmap(at, 2 << 20)) failed++;
  return (void *)failed;
}

static void *begin_capture(void *stream) { return (void *)(u64)p_cuStreamBeginCapture(stream, 0); }

static int launch_on(void *stream) {
  void *module, *f;
  int r = p_cuModuleLoadData(&module, "elastane simulated kernels\nwork 1000\n");
  if (!r) r = p_cuModuleGetFunction(&f, module, "work");
  return r ? r : p_cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, 0, 0);
}

struct late { u64 launches; int ended, result; };

static void *add_late(void *given) {
  struct late *l = given; struct node n = node_on(0, 1 << 20); void *graph, *ignored;
  p_cuGraphCreate(&graph, 0);
  while (__atomic_load_n(&l->launches, __ATOMIC_RELAXED) < 20) {}
  l->result = p_cuGraphAddMemAllocNode(&ignored, graph, 0, 0, &n);
  __atomic_store_n(&l->ended, 1, __ATOMIC_RELAXED);
  return 0;
}

static int step(const char *word) {
  const char *a = strchr(word, ':');
  a = a ? a + 1 : "";
  char name[32];
  snprintf(name, sizeof name, "%.*s", (int)strcspn(word, ":"), word);
  void *made = 0; u64 x = 0, y = 0; int r = -1;
#define IS(text) (!strcmp(name, text))
  if (IS("init")) r = p_cuInit(0);
  else if (IS("context")) { r = p_cuCtxCreate(&made, 0, (int)number(&a)); stack[top++] = (u64)made; }
  else if (IS("destroy")) r = p_cuCtxDestroy((void *)stack[0]);
  else if (IS("retain")) { r = p_cuDevicePrimaryCtxRetain(&made, 0); if (!r) p_cuCtxSetCurrent(made); }
  else if (IS("green")) { r = p_cuGreenCtxCreate(&made, 0, (int)number(&a), 0); if (!r) { stack[top++] = (u64)made; p_cuCtxFromGreenCtx(&made, (void *)stack[top - 1]); p_cuCtxSetCurrent(made); } }
  else if (IS("endgreen")) { int at = *a ? (int)number(&a) : top - 1; r = p_cuGreenCtxDestroy((void *)stack[at]); if (!r && at == top - 1) top--; }
  else if (IS("letgo")) r = p_cuDevicePrimaryCtxRelease(0);
  else if (IS("reset")) r = p_cuDevicePrimaryCtxReset(0);
  else if (IS("alloc")) { r = p_cuMemAlloc(&x, number(&a)); if (!r) stack[top++] = x; }
  else if (IS("managed")) { r = p_cuMemAllocManaged(&x, number(&a), 1); if (!r) stack[top++] = x; }
  else if (IS("pitch")) { u64 w = number(&a); r = p_cuMemAllocPitch(&x, &y, w, number(&a), 4); if (!r) stack[top++] = x; }
  else if (IS("host")) r = p_cuMemHostAlloc(&made, number(&a), 0);
  else if (IS("free")) { r = p_cuMemFree(stack[top - 1]); if (!r) top--; }
  else if (IS("pop")) { /* what was made last, whatever it is */
    u64 last = top > 1 ? stack[top - 1] : 0; r = -3;
    if (last) { r = p_cuMemFree(last); if (r) r = p_cuArrayDestroy((void *)last); if (r) r = p_cuMipmappedArrayDestroy((void *)last); }
    if (!r) top--;
  }
  else if (IS("wrongfree")) r = p_cuMemFree(4096);
  else if (IS("many")) { u64 n = number(&a), size = number(&a); r = 0; while (n-- && !r) { r = p_cuMemAlloc(&x, size); if (!r) stack[top++] = x; } }
  else if (IS("parallel")) {
    u64 n = number(&a), turns = number(&a); pthread_t threads[64]; struct work w[64]; r = 0;
    for (u64 i = 0; i < n; i++) { w[i] = (struct work){ (void *)stack[0], turns, (unsigned)i, 0 }; pthread_create(&threads[i], 0, work, &w[i]); }
    for (u64 i = 0; i < n; i++) { pthread_join(threads[i], 0); r += w[i].failed; }
  }
  else if (IS("endfull")) {
    /* the end of a second context with so many allocations, while a thread takes memory in the first */
    static struct beside b; pthread_t thread; u64 n = number(&a); b.context = (void *)stack[0];
    r = p_cuCtxCreate(&made, 0, 0);
    while (n-- && !r) r = p_cuMemAlloc(&x, 4096);
    if (!r) { pthread_create(&thread, 0, take_beside, &b); r = p_cuCtxDestroy(made); __atomic_store_n(&b.ends, 1, __ATOMIC_RELAXED); pthread_join(thread, 0); r = r ? r : b.failed; }
    p_cuCtxSetCurrent((void *)stack[0]);
  }
  else if (IS("freeall")) { r = 0; while (top > 1 && !r) r = p_cuMemFree(stack[--top]); }
  else if (IS("async")) { r = p_cuMemAllocAsync(&x, number(&a), 0); if (!r) stack[top++] = x; else if (x) r = -2; }
  else if (IS("freeasync")) { r = p_cuMemFreeAsync(stack[top - 1], 0); if (!r) top--; }
  else if (IS("pool")) { struct properties p = on(1, 0); r = p_cuMemPoolCreate(&made, &p); stack[1] = (u64)made; top = 2; }
  else if (IS("poolon")) { struct properties p = on(1, (int)number(&a)); r = p_cuMemPoolCreate(&made, &p); stack[1] = (u64)made; top = 2; }
  else if (IS("defaultpool")) { r = p_cuDeviceGetDefaultMemPool(&made, (int)number(&a)); stack[1] = (u64)made; top = 2; }
  else if (IS("poolof")) {
    /* a pool of memory of a kind at a location: the one that is created, the default or the present one */
    uint32_t type = (uint32_t)number(&a); struct properties p = on(type, (int)number(&a)); p.type = (uint32_t)number(&a);
    r = !strcmp(a, "default") ? p_cuMemGetDefaultMemPool(&made, &p.at, p.type)
      : !strcmp(a, "present") ? p_cuMemGetMemPool(&made, &p.at, p.type) : p_cuMemPoolCreate(&made, &p);
    stack[1] = (u64)made; top = 2;
  }
  else if (IS("frompool")) { r = p_cuMemAllocFromPoolAsync(&x, number(&a), (void *)stack[1], 0); if (!r) stack[top++] = x; }
  else if (IS("endpool")) r = p_cuMemPoolDestroy((void *)stack[1]);
  else if (IS("sync")) r = p_cuCtxSynchronize();
  else if (IS("create")) { struct properties p = on(1, 0); r = p_cuMemCreate(&x, number(&a), &p, 0); if (!r) stack[1] = x; }
  else if (IS("handles")) {
    /* so many handles, or what is mapped of them, while a thread takes others and gives them back */
    u64 n = number(&a); struct properties p = on(1, 0); pthread_t thread; void *failed;
    int mapped = *a == 'm'; u64 at = 0; if (mapped) p_cuMemAddressReserve(&at, n * (2 << 20), 0, 0, 0);
    pthread_create(&thread, 0, mapped ? take_mapped : take_handles, (void *)stack[0]); r = 0;
    for (; n && !r; n--, at += 2 << 20) r = mapped ? map_at(at) : p_cuMemCreate(&x, 2 << 20, &p, 0);
    __atomic_store_n(&handles_end, 1, __ATOMIC_RELAXED); pthread_join(thread, &failed); if (!r && failed) r = -2;
  }
  else if (IS("createon")) { uint32_t type = (uint32_t)number(&a); struct properties p = on(type, (int)number(&a)); r = p_cuMemCreate(&x, number(&a), &p, 0); }
  else if (IS("map")) { u64 size = number(&a); p_cuMemAddressReserve(&stack[2], size, 0, 0, 0); r = p_cuMemMap(stack[2], size, 0, stack[1], 0); }
  else if (IS("unmap")) r = p_cuMemUnmap(stack[2], number(&a));
  else if (IS("again")) r = p_cuMemRetainAllocationHandle(&x, stack[2]);
  else if (IS("release")) r = p_cuMemRelease(stack[1]);
  else if (IS("array")) { u64 w = number(&a), h = number(&a); struct array3d d = { w, h, 0, 0x20, 1, (uint32_t)number(&a) }; r = p_cuArray3DCreate(&made, &d); if (!r) stack[top++] = (u64)made; }
  else if (IS("endarray")) r = p_cuArrayDestroy((void *)stack[--top]);
  else if (IS("mipmap")) { u64 w = number(&a), h = number(&a); u64 depth = number(&a); struct array3d d = { w, h, depth, 0x20, 1, (uint32_t)number(&a) }; r = p_cuMipmappedArrayCreate(&made, &d, 2); if (!r) stack[top++] = (u64)made; }
  else if (IS("endmipmap")) r = p_cuMipmappedArrayDestroy((void *)stack[--top]);
  else if (IS("graph")) {
    struct node n; void *graph, *ignored; memset(&n, 0, sizeof n); n.pool = on(1, 0); n.bytes = number(&a);
    p_cuGraphCreate(&graph, 0);
    r = p_cuGraphAddMemAllocNode(&ignored, graph, 0, 0, &n);
    if (!r) { p_cuGraphInstantiateWithFlags(&made, graph, 0); r = p_cuGraphLaunch(made, 0); }
  }
  else if (IS("latenode")) {
    /* launches of a graph of the second device until a thread has put memory of the first one into another */
    struct node n = node_on(1, (u64)500 << 20); struct late l = { 0, 0, 0 }; void *graph, *ignored; pthread_t thread;
    p_cuGraphCreate(&graph, 0);
    r = p_cuGraphAddMemAllocNode(&ignored, graph, 0, 0, &n);
    if (!r) r = p_cuGraphInstantiateWithFlags(&made, graph, 0);
    pthread_create(&thread, 0, add_late, &l);
    while (!r && !__atomic_load_n(&l.ended, __ATOMIC_RELAXED)) { r = p_cuGraphLaunch(made, 0); p_cuDeviceGraphMemTrim(1); __atomic_fetch_add(&l.launches, 1, __ATOMIC_RELAXED); }
    pthread_join(thread, 0); if (!r) r = l.result;
  }
  else if (IS("anynode")) {
    struct { int type, reserved[3]; struct node n; uint8_t rest[120]; } p; void *graph, *ignored; memset(&p, 0, sizeof p);
    p.type = 10; p.n.pool = on(1, 0); p.n.bytes = number(&a);
    p_cuGraphCreate(&graph, 0);
    r = p_cuGraphAddNode(&ignored, graph, 0, 0, 0, &p);
    if (!r) { p_cuGraphInstantiateWithFlags(&made, graph, 0); r = p_cuGraphLaunch(made, 0); }
  }
  else if (IS("nodes")) {
    /* a graph of several nodes: as many as are given, each so large */
    u64 n = number(&a), size = number(&a); void *graph, *ignored; r = 0;
    p_cuGraphCreate(&graph, 0);
    for (u64 i = 0; i < n && !r; i++) { struct node one; memset(&one, 0, sizeof one); one.pool = on(1, 0); one.bytes = size; r = p_cuGraphAddMemAllocNode(&ignored, graph, 0, 0, &one); }
    if (!r) { p_cuGraphInstantiateWithFlags(&made, graph, 0); r = p_cuGraphLaunch(made, 0); }
  }
  else if (IS("child")) {
    /* a graph with a node that takes so much, moved into another one with a node of its own */
    struct { int type, reserved[3]; void *graph; int ownership; uint8_t rest[220]; } p; struct node n; void *graph, *child, *ignored;
    memset(&n, 0, sizeof n); n.pool = on(1, 0); n.bytes = number(&a); memset(&p, 0, sizeof p);
    p_cuGraphCreate(&graph, 0); p_cuGraphCreate(&child, 0);
    r = p_cuGraphAddMemAllocNode(&ignored, graph, 0, 0, &n);
    if (!r) r = p_cuGraphAddMemAllocNode(&ignored, child, 0, 0, &n);
    p.type = 4; p.graph = child; p.ownership = *a == 'c' ? 0 : 1;
    if (!r) r = p_cuGraphAddNode(&ignored, graph, 0, 0, 0, &p);
    if (!r) { p_cuGraphInstantiateWithFlags(&made, graph, 0); r = p_cuGraphLaunch(made, 0); }
  }
  else if (IS("capture")) {
    /* the same by capturing a stream, or the default one */
    u64 n = number(&a), size = number(&a); void *graph, *stream = 0; r = *a == 'd' ? 0 : p_cuStreamCreate(&stream, 0);
    if (!r) r = p_cuStreamBeginCapture(stream, 0);
    for (u64 i = 0; i < n && !r; i++) r = p_cuMemAllocAsync(&x, size, stream);
    if (p_cuStreamEndCapture(stream, &graph)) r = -2;
    if (!r) { p_cuGraphInstantiateWithFlags(&made, graph, 0); r = p_cuGraphLaunch(made, 0); }
  }
  else if (IS("recapture")) {
    /* a graph that is captured again, with an allocation */
    u64 size = number(&a); void *graph, *stream; p_cuGraphCreate(&graph, 0); r = p_cuStreamCreate(&stream, 0);
    if (!r) r = p_cuStreamBeginRecaptureToGraph(stream, 0, graph, 0, 0);
    if (!r) r = p_cuMemAllocAsync(&x, size, stream);
    if (p_cuStreamEndCapture(stream, &graph)) r = -2;
    if (!r) { p_cuGraphInstantiateWithFlags(&made, graph, 0); r = p_cuGraphLaunch(made, 0); }
  }
  else if (IS("strayend")) {
    /* allocations while a stream is captured, after the end of a capture of another one that is not */
    u64 n = number(&a), size = number(&a); void *graph, *stream, *other; r = p_cuStreamCreate(&stream, 0);
    if (!r) r = p_cuStreamCreate(&other, 0);
    if (!r) r = p_cuStreamBeginCapture(stream, 0);
    if (!r && !p_cuStreamEndCapture(other, &graph)) r = -2;
    for (u64 i = 0; i < n && !r; i++) r = p_cuMemAllocAsync(&x, size, stream);
    if (!n && !r) r = launch_on(stream);
    if (p_cuStreamEndCapture(stream, &graph)) r = -2;
    if (!r && n) { p_cuGraphInstantiateWithFlags(&made, graph, 0); r = p_cuGraphLaunch(made, 0); }
  }
  else if (IS("abandon")) {
    /* a capture whose stream, context or thread ends */
    void *stream, *result; pthread_t thread; r = *a == 'c' ? p_cuCtxCreate(&made, 0, 0) : 0;
    if (!r) r = p_cuStreamCreate(&stream, 0);
    if (!r && *a == 't') { pthread_create(&thread, 0, begin_capture, stream); pthread_join(thread, &result); r = (int)(u64)result; }
    else if (!r) r = p_cuStreamBeginCapture(stream, 0);
    if (!r && *a == 'c') { r = p_cuCtxDestroy(made); p_cuCtxSetCurrent((void *)stack[0]); }
    else if (!r && *a != 't') r = p_cuStreamDestroy(stream);
  }
  else if (IS("captures")) {
    /* so many at once, of which all but the last one end before a launch is captured */
    u64 n = number(&a); void *graph, *streams[100]; r = 0;
    for (u64 i = 0; i < n && !r; i++) { r = p_cuStreamCreate(&streams[i], 0); if (!r) r = p_cuStreamBeginCapture(streams[i], 0); }
    for (u64 i = 0; i + 1 < n && !r; i++) r = p_cuStreamEndCapture(streams[i], &graph);
    if (!r) r = launch_on(streams[n - 1]);
    if (!r) r = p_cuStreamEndCapture(streams[n - 1], &graph);
  }
  else if (IS("sleep")) { r = usleep((unsigned)number(&a) * 1000); }
  else if (IS("stream")) { r = p_cuStreamCreate(&made, 0); stack[top++] = (u64)made; }
  else if (IS("asyncon")) { u64 size = number(&a); r = p_cuMemAllocAsync(&x, size, (void *)stack[number(&a)]); }
  else if (IS("current")) r = p_cuCtxSetCurrent((void *)stack[number(&a)]);
  else if (IS("export")) { int file = -1; r = p_cuMemExportToShareableHandle(&file, stack[1], 1, 0); if (!r) close(file); }
  else if (IS("bind")) {
    /* what was created, or is mapped: to a multicast object or a sparse array */
    struct array_map m; memset(&m, 0, sizeof m); m.operation = 1; m.handle = stack[1];
    r = p_cuMulticastCreate(&x, 0);
    if (!strcmp(a, "mem")) r = p_cuMulticastBindMem(x, 0, stack[1], 0, 4096, 0);
    if (!strcmp(a, "mem2")) r = p_cuMulticastBindMem_v2(x, 0, 0, stack[1], 0, 4096, 0);
    if (!strcmp(a, "address")) r = p_cuMulticastBindAddr(x, 0, stack[2] + 4096, 4096, 0);
    if (!strcmp(a, "address2")) r = p_cuMulticastBindAddr_v2(x, 0, 0, stack[2], 4096, 0);
    if (!strcmp(a, "endpoint")) r = p_cuLogicalEndpointBindMem(1, 0, 0, stack[1], 0, 4096, 0);
    if (!strcmp(a, "endpointat")) r = p_cuLogicalEndpointBindAddr(1, 0, 0, stack[2], 4096, 0);
    if (!strcmp(a, "array")) r = p_cuMemMapArrayAsync(&m, 1, 0);
    if (!strcmp(a, "array_ptsz")) r = p_cuMemMapArrayAsync_ptsz(&m, 1, 0);
    if (!strcmp(a, "nothing")) { m.operation = 2; r = p_cuMemMapArrayAsync(&m, 1, 0); }
    if (!strcmp(a, "unknown")) r = p_cuMulticastBindMem(x, 0, 7, 0, 4096, 0);
  }
  else if (IS("share")) { r = p_cuIpcGetMemHandle(&shared, stack[top - 1]); if (*a) { FILE *f = fopen(a, "w"); if (!f || fwrite(&shared, sizeof shared, 1, f) != 1 || fclose(f)) r = -2; } }
  else if (IS("opened")) {
    if (*a) { FILE *f = fopen(a, "r"); if (!f || fread(&shared, sizeof shared, 1, f) != 1 || fclose(f)) return printf("opened no file\n"); }
    r = p_cuIpcOpenMemHandle(&x, shared, 1); if (!r) stack[top++] = x; }
  else if (IS("closed")) r = p_cuIpcCloseMemHandle(stack[--top]);
  else if (IS("external")) {
    struct external e; struct buffer b; memset(&e, 0, sizeof e); memset(&b, 0, sizeof b); e.type = 1; e.bytes = b.bytes = number(&a);
    r = p_cuImportExternalMemory(&made, &e);
    if (!r) r = p_cuExternalMemoryGetMappedBuffer(&x, made, &b);
    if (!r) stack[top++] = x;
    if (!r) r = p_cuDestroyExternalMemory(made);
  }
  else if (IS("write")) r = p_cuMemsetD8(stack[top - 1], 1, *a ? number(&a) : 1);
  else if (IS("resident")) {
    /* whether this process has less than so much of the memory of the machine */
    u64 most = number(&a), pages = 0, all; FILE *f = fopen("/proc/self/statm", "r");
    if (f && fscanf(f, "%lu %lu", &all, &pages) == 2) r = pages * (u64)sysconf(_SC_PAGESIZE) < most ? 0 : 1;
    if (f) fclose(f);
  }
  else if (IS("launches")) {
    /* so many launches of a kernel of so many microseconds, in the way that is named */
    u64 n = number(&a), us = number(&a); static char module[64]; void *f, *graph, *executable, *stream;
    struct { uint32_t sizes[6], shared; void *stream, *attributes; uint32_t count; } config; memset(&config, 0, sizeof config);
    snprintf(module, sizeof module, "elastane simulated kernels\nwork %lu\n", us * 1000);
    r = p_cuModuleLoadData(&made, module); if (!r) r = p_cuModuleGetFunction(&f, made, "work");
    p_cuStreamCreate(&stream, 0); config.stream = stream;
    for (u64 i = 0; i < n && !r; i++) {
      if (!strcmp(a, "ex")) r = p_cuLaunchKernelEx(&config, f, 0, 0);
      else if (!strcmp(a, "cooperative")) r = p_cuLaunchCooperativeKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, 0);
      else if (!strcmp(a, "graph")) {
        if (!i) { p_cuStreamBeginCapture(stream, 0); p_cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, 0, 0); p_cuStreamEndCapture(stream, &graph); p_cuGraphInstantiateWithFlags(&executable, graph, 0); }
        r = p_cuGraphLaunch(executable, stream);
      }
      else r = p_cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, 0, 0);
    }
    if (!r) r = p_cuCtxSynchronize();
  }
  else if (IS("trimgraphs")) r = p_cuDeviceGraphMemTrim(0);
  else if (IS("kernel")) r = launch_on(0);
  else if (IS("realkernel")) r = p_cuModuleLoadData(&made, "\177ELF and so on, as a real image begins");
  else if (IS("info")) { r = p_cuMemGetInfo(&x, &y); printf("info %d %lu of %lu\n", r, x >> 20, y >> 20); fflush(stdout); return 0; }
  else if (IS("halfinfo")) { r = p_cuMemGetInfo(&x, 0); if (!r) r = p_cuMemGetInfo(0, &y); printf("halfinfo %d %lu of %lu\n", r, x >> 20, y >> 20); fflush(stdout); return 0; }
  else if (IS("attribute")) { int value = -1; r = p_cuDeviceGetAttribute(&value, (int)number(&a), 0); printf("attribute %d %d\n", r, value); fflush(stdout); return 0; }
  else if (IS("total")) { r = p_cuDeviceTotalMem(&x, 0); printf("total %d %lu\n", r, x >> 20); fflush(stdout); return 0; }
  else if (IS("nvml") || IS("processes")) { nvml(name); fflush(stdout); return 0; }
  else if (IS("lists")) { lists((unsigned)number(&a)); fflush(stdout); return 0; }
  else if (IS("secure")) { printf("secure %lu\n", getauxval(AT_SECURE)); fflush(stdout); return 0; }
#ifndef MUSL
  else if (IS("libc")) { char text[64] = "none"; confstr(_CS_GNU_LIBC_VERSION, text, 64); printf("libc %s\n", text); fflush(stdout); return 0; }
#endif
  else if (IS("second")) {
    /* another copy of the driver: a function of it by name, and how it is asked for others */
    void *copy = dlopen(a, RTLD_NOW);
    int (*take)(u64 *, u64) = (int (*)(u64 *, u64))dlsym(copy, "cuMemAlloc_v2");
    search_fn search = (search_fn)dlsym(copy, "cuGetProcAddress_v2");
    int status; r = take(&x, 1); printf("second %d %d\n", r, search("cuMemAlloc", &made, 3020, 0, &status)); fflush(stdout); return 0;
  }
  else if (IS("next")) { void *one = dlsym(RTLD_NEXT, "malloc"), *two = dlsym(RTLD_NEXT, "malloc"); r = one && one == two ? 0 : 1; }
  else if (IS("default")) { printf("default %s %s\n", dlsym(RTLD_DEFAULT, "cuMemAlloc_v2") ? "found" : "none", dlsym(RTLD_DEFAULT, "cuNothing") ? "found" : "none"); return 0; }
  else if (IS("empty")) { void *found = &found; int status = 9; search_fn search = (search_fn)dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuGetProcAddress_v2"); r = search("", &found, 0, 0, &status); printf("empty %d %d %d\n", r, found == 0, status); return 0; }
  else if (IS("versions")) {
    /* each version that there was, with each flag: what is found has to be what is kept for it */
    search_fn search = (search_fn)dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuGetProcAddress_v2");
    static const int versions[] = { 2000, 3020, 4000, 7000, 9000, 10000, 11000, 11020, 11030, 11040, 12000, 12030, 13000, 13050 };
    static const char *const names[] = { "cuMemAlloc", "cuMemFree", "cuMemGetInfo", "cuDeviceTotalMem", "cuCtxCreate", "cuMemAllocAsync", "cuLaunchKernel", "cuGraphLaunch", "cuGetProcAddress" };
    int count = 0, real = 0;
    for (unsigned v = 0; v < sizeof versions / sizeof *versions; v++) for (unsigned n = 0; n < sizeof names / sizeof *names; n++) for (u64 flags = 0; flags < 3; flags++) {
      void *found = 0; int status; Dl_info about;
      if (search(names[n], &found, versions[v], flags, &status)) continue;
      count++;
      if (!dladdr(found, &about) || strstr(about.dli_fname, "libcuda.so.1")) real++;
    }
    printf("versions %s %d\n", count > 200 ? "many" : "few", real); return 0;
  }
  else if (IS("driver")) {
    /* the versions of CUDA and of the driver */
    char text[80] = ""; int version = 0; void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    r = ((int (*)(void))dlsym(nvml, "nvmlInit_v2"))();
    if (!r) r = ((int (*)(char *, unsigned))dlsym(nvml, "nvmlSystemGetDriverVersion"))(text, sizeof text);
    p_cuDriverGetVersion(&version); printf("driver %d %d %s\n", r, version, text); fflush(stdout); return 0;
  }
  else if (IS("has")) {
    /* a function by name, and as the driver is asked for it */
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *found = 0;
    int (*search)(const char *, void **, int, u64) = (int (*)(const char *, void **, int, u64))dlsym(cuda, "cuGetProcAddress");
    printf("has %s %d\n", dlsym(cuda, a) ? "yes" : "no", search(a, &found, 13050, 0)); fflush(stdout); return 0;
  }
  else if (IS("kill")) { fflush(stdout); raise(SIGKILL); }
  else if (IS("say")) { printf("%s\n", a); fflush(stdout); return 0; }
  else if (IS("pause")) { char line[8]; printf("pause\n"); fflush(stdout); if (!fgets(line, sizeof line, stdin)) exit(0); return 0; }
  else { printf("unknown %s\n", name); exit(4); }
  printf("%s %d\n", name, r);
  fflush(stdout);
  return 0;
}

int main(int count, char **words) {
  find(words[1]);
  for (int i = 2; i < count; i++) {
    if (!strcmp(words[i], "fork")) {
      fflush(stdout);
      int status; pid_t child = fork();
      if (child) { waitpid(child, &status, 0); printf("child %s\n", WIFSIGNALED(status) ? "killed" : "ended"); fflush(stdout); while (i + 1 < count && strcmp(words[i + 1], "parent")) i++; i++; }
      else { top = 0; }
    } else if (!strcmp(words[i], "parent")) exit(0);
    else if (!strcmp(words[i], "exec")) { words[i] = words[1]; words[i - 1] = words[0]; execv(words[0], words + i - 1); exit(5); }
    else step(words[i]);
  }
  return 0;
}
