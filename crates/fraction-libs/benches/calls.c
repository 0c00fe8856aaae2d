/* What a call costs, with and without what stands before the driver. "calls LIBRARY" measures both in
   turn in one process and prints "name real hooked" in nanoseconds. The other words use the GPU that is
   there, simulated or real: "work MS LENGTH_US" launches kernels for a time and prints how many of
   them ended; "times COUNT LIBRARY" how long launches take; "addresses" what is found at two addresses. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef uint64_t u64;
typedef int (*launch_fn)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
typedef int (*alloc_fn)(u64 *, u64);
typedef int (*free_fn)(u64);
typedef int (*info_fn)(u64 *, u64 *);
typedef void *(*dlsym_fn)(void *, const char *);

static u64 now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (u64)t.tv_sec * 1000000000 + (u64)t.tv_nsec;
}

static void *found(void *library, const char *name) {
  void *at = dlsym(library, name);
  if (!at) { fprintf(stderr, "no %s\n", name); exit(2); }
  return at;
}

/* The least of many batches: other work on the machine only ever adds. */
#define MEASURE(name, turns, real, hooked) do { \
    double best[2] = { 1e18, 1e18 }; \
    for (int batch = 0; batch < 400; batch++) for (int which = 0; which < 2; which++) { \
      u64 begin = now(); \
      for (int i = 0; i < turns; i++) { if (which) { hooked; } else { real; } } \
      double took = (double)(now() - begin) / turns; \
      if (took < best[which]) best[which] = took; \
    } \
    printf("%s %.2f %.2f\n", name, best[0], best[1]); fflush(stdout); \
  } while (0)

static void calls(const char *path) {
  void *cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL), *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!cuda || !library) { fprintf(stderr, "%s\n", dlerror()); exit(2); }
  launch_fn launch = (launch_fn)found(cuda, "cuLaunchKernel"), launch2 = (launch_fn)found(library, "cuLaunchKernel");
  alloc_fn alloc = (alloc_fn)found(cuda, "cuMemAlloc_v2"), alloc2 = (alloc_fn)found(library, "cuMemAlloc_v2");
  free_fn give = (free_fn)found(cuda, "cuMemFree_v2"), give2 = (free_fn)found(library, "cuMemFree_v2");
  info_fn info = (info_fn)found(cuda, "cuMemGetInfo_v2"), info2 = (info_fn)found(library, "cuMemGetInfo_v2");
  dlsym_fn symbol2 = (dlsym_fn)found(library, "dlsym");
  u64 at, free_bytes, total, held;
  if (alloc2(&held, 4096)) { fprintf(stderr, "nothing is granted\n"); exit(2); }
  if (info2(&free_bytes, &total) || total != 4ull << 30) { fprintf(stderr, "the limit is not in force\n"); exit(2); }
  MEASURE("launch", 10000, launch(0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0), launch2(0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0));
  MEASURE("alloc+free", 2000, alloc(&at, 4096); give(at), alloc2(&at, 4096); give2(at));
  MEASURE("cuMemGetInfo", 5000, info(&free_bytes, &total), info2(&free_bytes, &total));
  MEASURE("dlsym", 2000, dlsym(cuda, "cuInit"), symbol2(cuda, "cuInit"));
  MEASURE("dlsym-other", 2000, dlsym(RTLD_DEFAULT, "malloc"), symbol2(RTLD_DEFAULT, "malloc"));
}

/* A kernel that keeps one multiprocessor busy for so long, on a simulated or a real driver. */
struct gpu { void *cuda, *stream, *kernel; u64 cycles; void *parameters[1]; launch_fn launch; int (*wait)(void); int failed; };

static const char *const PTX = ".version 6.4\n.target sm_75\n.address_size 64\n"
  ".visible .entry work(.param .u64 cycles) {\n.reg .u64 %r<4>;\n.reg .pred %p;\n"
  "ld.param.u64 %r0, [cycles];\nmov.u64 %r1, %clock64;\nL: mov.u64 %r2, %clock64;\n"
  "sub.u64 %r3, %r2, %r1;\nsetp.lt.u64 %p, %r3, %r0;\n@%p bra L;\nret;\n}\n";

static void open_gpu(struct gpu *g, u64 us) {
  static char text[64];
  char name[64] = "";
  void *context, *module;
  void *cuda = g->cuda = dlopen("libcuda.so.1", RTLD_NOW);
  if (!cuda) { fprintf(stderr, "%s\n", dlerror()); exit(2); }
  int r = ((int (*)(unsigned))found(cuda, "cuInit"))(0);
  if (!r) r = ((int (*)(void **, int))found(cuda, "cuDevicePrimaryCtxRetain"))(&context, 0);
  if (!r) r = ((int (*)(void *))found(cuda, "cuCtxSetCurrent"))(context);
  if (!r) r = ((int (*)(char *, int, int))found(cuda, "cuDeviceGetName"))(name, 63, 0);
  int simulated = !strncmp(name, "Elastane Simulated", 18);
  snprintf(text, sizeof text, "elastane simulated kernels\nwork %lu\n", (unsigned long)(us * 1000));
  if (!r) r = ((int (*)(void **, const char *))found(cuda, "cuModuleLoadData"))(&module, simulated ? text : PTX);
  if (!r) r = ((int (*)(void **, void *, const char *))found(cuda, "cuModuleGetFunction"))(&g->kernel, module, "work");
  if (!r) r = ((int (*)(void **, unsigned))found(cuda, "cuStreamCreate"))(&g->stream, 1);
  g->cycles = us * 1500;
  g->parameters[0] = &g->cycles;
  g->launch = (launch_fn)found(cuda, "cuLaunchKernel");
  g->wait = (int (*)(void))found(cuda, "cuCtxSynchronize");
  g->failed = r;
}

static int launch(struct gpu *g, launch_fn call) {
  return call(g->kernel, 1, 1, 1, 1, 1, 1, 0, g->stream, g->parameters, 0);
}

static void work(u64 ms, u64 us) {
  struct gpu g;
  open_gpu(&g, us);
  u64 end = now() + ms * 1000000, count = 0;
  /* As a program that has some kernels in flight and waits for them now and then. */
  while (!g.failed && now() < end) {
    for (int i = 0; i < 4 && !g.failed; i++, count++) g.failed = launch(&g, g.launch);
    if (!g.failed) g.failed = g.wait();
  }
  printf("%d %lu\n", g.failed, (unsigned long)count);
}

/* Nanoseconds of a launch of a kernel that does nothing, and of a graph of 100 of them, by the driver and
   by what stands before it, in turn: processes differ by more than that costs. */
static void times(u64 count, const char *path) {
  struct gpu g;
  void *graph, *executable, *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) { fprintf(stderr, "%s\n", dlerror()); exit(2); }
  open_gpu(&g, 0);
  launch_fn launches[2] = { g.launch, (launch_fn)found(library, "cuLaunchKernel") };
  int (*graphs[2])(void *, void *) = { (int (*)(void *, void *))found(g.cuda, "cuGraphLaunch"), (int (*)(void *, void *))found(library, "cuGraphLaunch") };
  double best[4] = { 1e18, 1e18, 1e18, 1e18 };
  u64 batch = count / 100;
  if (!g.failed) g.failed = ((int (*)(void *, unsigned))found(g.cuda, "cuStreamBeginCapture_v2"))(g.stream, 0);
  for (int i = 0; i < 100 && !g.failed; i++) g.failed = launch(&g, g.launch);
  if (!g.failed) g.failed = ((int (*)(void *, void **))found(g.cuda, "cuStreamEndCapture"))(g.stream, &graph);
  if (!g.failed) g.failed = ((int (*)(void **, void *, u64))found(g.cuda, "cuGraphInstantiateWithFlags"))(&executable, graph, 0);
  for (int b = 0; b < 400 && !g.failed; b++) {
    int which = b % 4, hooked = which % 2;
    u64 times = which < 2 ? batch : batch / 100, begin = now();
    for (u64 i = 0; i < times && !g.failed; i++) g.failed = which < 2 ? launch(&g, launches[hooked]) : graphs[hooked](executable, g.stream);
    if (!g.failed) g.failed = g.wait();
    double took = (double)(now() - begin) / (double)times;
    if (took < best[which]) best[which] = took;
  }
  printf("%d %.1f %.1f %.1f %.1f\n", g.failed, best[0], best[1], best[2], best[3]);
}

/* Functions whose addresses differ by how they are found: they would not be replaced in both ways. */
static void addresses(void) {
  typedef int (*search_fn)(const char *, void **, int, u64, int *);
  static const struct { const char *name, *symbol; int version; u64 flags; } all[] = {
    { "cuMemAlloc", "cuMemAlloc_v2", 3020, 0 }, { "cuMemFree", "cuMemFree_v2", 3020, 0 },
    { "cuMemGetInfo", "cuMemGetInfo_v2", 3020, 0 }, { "cuMemAllocManaged", "cuMemAllocManaged", 6000, 0 },
    { "cuMemAllocPitch", "cuMemAllocPitch_v2", 3020, 0 }, { "cuMemAllocAsync", "cuMemAllocAsync", 11020, 0 },
    { "cuMemAllocAsync", "cuMemAllocAsync_ptsz", 11020, 2 }, { "cuMemFreeAsync", "cuMemFreeAsync_ptsz", 11020, 2 },
    { "cuMemAllocFromPoolAsync", "cuMemAllocFromPoolAsync", 11020, 0 }, { "cuMemPoolCreate", "cuMemPoolCreate", 11020, 0 },
    { "cuMemCreate", "cuMemCreate", 10020, 0 }, { "cuMemMap", "cuMemMap", 10020, 0 },
    { "cuMemRelease", "cuMemRelease", 10020, 0 }, { "cuMemUnmap", "cuMemUnmap", 10020, 0 },
    { "cuArrayCreate", "cuArrayCreate_v2", 3020, 0 }, { "cuArray3DCreate", "cuArray3DCreate_v2", 3020, 0 },
    { "cuMipmappedArrayCreate", "cuMipmappedArrayCreate", 5000, 0 }, { "cuCtxCreate", "cuCtxCreate_v2", 3020, 0 },
    { "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRetain", 7000, 0 }, { "cuDeviceTotalMem", "cuDeviceTotalMem_v2", 3020, 0 },
    { "cuLaunchKernel", "cuLaunchKernel", 4000, 0 }, { "cuLaunchKernel", "cuLaunchKernel_ptsz", 7000, 2 },
    { "cuLaunchKernelEx", "cuLaunchKernelEx", 11060, 0 }, { "cuLaunchKernelEx", "cuLaunchKernelEx_ptsz", 11060, 2 },
    { "cuLaunchCooperativeKernel", "cuLaunchCooperativeKernel", 9000, 0 }, { "cuGraphLaunch", "cuGraphLaunch", 10000, 0 },
    { "cuGraphLaunch", "cuGraphLaunch_ptsz", 10000, 2 }, { "cuGraphInstantiateWithFlags", "cuGraphInstantiateWithFlags", 11040, 0 },
    { "cuGraphAddMemAllocNode", "cuGraphAddMemAllocNode", 11040, 0 }, { "cuGetProcAddress", "cuGetProcAddress_v2", 12000, 0 },
  };
  void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
  if (!cuda) { fprintf(stderr, "%s\n", dlerror()); exit(2); }
  search_fn search = (search_fn)found(cuda, "cuGetProcAddress_v2");
  ((int (*)(unsigned))found(cuda, "cuInit"))(0);
  for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
    void *by_search = 0, *by_name = dlsym(cuda, all[i].symbol);
    int status;
    search(all[i].name, &by_search, all[i].version, all[i].flags, &status);
    if (by_search != by_name) printf("%s ", all[i].symbol);
  }
  printf("\n");
}

int main(int count, char **words) {
  if (count == 3 && !strcmp(words[1], "calls")) calls(words[2]);
  else if (count == 4 && !strcmp(words[1], "work")) work(strtoull(words[2], 0, 10), strtoull(words[3], 0, 10));
  else if (count == 4 && !strcmp(words[1], "times")) times(strtoull(words[2], 0, 10), words[3]);
  else if (count == 2 && !strcmp(words[1], "addresses")) addresses();
  else return 2;
  return 0;
}
