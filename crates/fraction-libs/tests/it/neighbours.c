/* A libnvidia-ml.so.1 whose every list has a process of another run, and which knows a structure of
   memory that is newer than any that the libraries know. */
#include <string.h>

int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **into) { *into = (void *)(index + 1ul); return 0; }
int nvmlDeviceGetUUID(void *device, char *into, unsigned room) {
  strcpy(into, device == (void *)1 ? "GPU-01010101-0101-0101-0101-010101010101"
                                   : "GPU-02020202-0202-0202-0202-020202020202");
  return 0;
}

#define LIST(name) int name(void *device, unsigned *count, void *into) { if (!count) return 2; *count = 1; return 0; }
LIST(nvmlDeviceGetComputeRunningProcesses)
LIST(nvmlDeviceGetComputeRunningProcesses_v2)
LIST(nvmlDeviceGetComputeRunningProcesses_v3)
LIST(nvmlDeviceGetGraphicsRunningProcesses)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3)
LIST(nvmlDeviceGetMPSComputeRunningProcesses)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3)
LIST(nvmlDeviceGetAccountingPids)
int nvmlDeviceGetRunningProcessDetailList(void *device, void *list) { return 0; }
int nvmlDeviceGetProcessUtilization(void *device, void *into, unsigned *count, unsigned long since) { return 0; }
int nvmlDeviceGetProcessesUtilizationInfo(void *device, void *into) { return 0; }
int nvmlDeviceGetAccountingStats(void *device, unsigned pid, void *into) { return 0; }
int nvmlDeviceGetAccountingStats_v2(void *device, void *into) { return 0; }
int nvmlDeviceSetMemoryLimits_v1(void *device, void *limits) { return 0; }
int nvmlDeviceGetMemoryInfo(void *device, unsigned long *into) { into[0] = 8ul << 30; into[1] = 8ul << 30; into[2] = 0; return 0; }
int nvmlDeviceGetMemoryInfo_v2(void *device, unsigned long *into) {
  for (int at = 1; at < 5; at++) into[at] = at == 2 || at == 4 ? 0 : 8ul << 30;
  return 0;
}
