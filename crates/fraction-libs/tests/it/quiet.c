/* A program that may make no system call but read, write and exit once it has begun: it ends by SIGKILL at
   the first other one. Prints what it did, "limited" if the library was in its calls. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef uint64_t u64;

int main(int count, char **words) {
  void *cuda = dlopen("libcuda.so.1", RTLD_NOW);
  int (*alloc)(u64 *, u64) = (int (*)(u64 *, u64))dlsym(cuda, "cuMemAlloc_v2");
  int (*give)(u64) = (int (*)(u64))dlsym(cuda, "cuMemFree_v2");
  int (*info)(u64 *, u64 *) = (int (*)(u64 *, u64 *))dlsym(cuda, "cuMemGetInfo_v2");
  int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **) =
    (int (*)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **))dlsym(cuda, "cuLaunchKernel");
  u64 held[100], free_bytes, total;
  if (count != 2 || alloc(&held[0], 1) || give(held[0]) || info(&free_bytes, &total)) { printf("it does not begin\n"); return 2; }
  fflush(stdout);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)) return 3;
  int failed = 0;
  for (int i = 0; i < 100000; i++) failed |= launch(0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0);
  for (int i = 0; i < 1000; i++) {
    for (int at = 0; at < 100; at++) failed |= alloc(&held[at], 4096);
    for (int at = 0; at < 100; at++) failed |= give(held[at]);
    failed |= !dlsym(cuda, "cuInit");
  }
  const char *text = failed ? "refused\n" : total == 4ull << 30 ? "limited\n" : "not limited\n";
  u64 length = 0;
  while (text[length]) length++;
  if (words[1][0] == 'c') syscall(SYS_getppid);
  if (write(1, text, length) < 0) syscall(SYS_exit, 4);
  syscall(SYS_exit, 0);
}
