/* A plugin that looks for functions of the driver itself (-DPLUGIN), and a program that loads it in the way of its
   first argument. It prints what 5 GiB get. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifdef PLUGIN
int attempt(void) {
  void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *context; uint64_t address;
  int (*init)(unsigned) = (int (*)(unsigned))dlsym(cuda, "cuInit");
  int (*retain)(void **, int) = (int (*)(void **, int))dlsym(cuda, "cuDevicePrimaryCtxRetain");
  int (*current)(void *) = (int (*)(void *))dlsym(cuda, "cuCtxSetCurrent");
  int (*take)(uint64_t *, uint64_t) = (int (*)(uint64_t *, uint64_t))dlsym(cuda, "cuMemAlloc_v2");
  init(0); retain(&context, 0); current(context);
  return take(&address, (uint64_t)5 << 30);
}
#else
int main(int count, char **words) {
  if (count < 3) return 1;
  void *plugin = !strcmp(words[1], "namespace") ? dlmopen(LM_ID_NEWLM, words[2], RTLD_NOW)
    : dlopen(words[2], RTLD_NOW | (strcmp(words[1], "deepbind") ? 0 : RTLD_DEEPBIND));
  if (!plugin) return 2;
  printf("%d\n", ((int (*)(void))dlsym(plugin, "attempt"))());
  return 0;
}
#endif
