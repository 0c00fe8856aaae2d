/* A driver whose functions do next to nothing, so that what stands before them can be measured. */
#include <stdint.h>
#include <string.h>

static uint64_t address = 1 << 20;
static volatile unsigned launched;

int cuInit(unsigned flags) { return flags != 0; }
int cuCtxGetDevice(int *device) { *device = 0; return 0; }
int cuCtxGetCurrent(uint64_t *context) { *context = 16; return 0; }
int cuCtxSynchronize(void) { return 0; }
int cuDeviceGetUuid_v2(uint8_t *uuid, int device) { memset(uuid, 1, 16); return device; }
int cuMemAlloc_v2(uint64_t *into, uint64_t bytes) { *into = address; address += bytes; return 0; }
int cuMemFree_v2(uint64_t at) { return at == 0; }
int cuMemGetInfo_v2(uint64_t *free, uint64_t *total) { *free = 7ull << 30; *total = 8ull << 30; return 0; }
int cuLaunchKernel(void *f, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **parameters, void **extra) {
  launched++;
  return 0;
}
