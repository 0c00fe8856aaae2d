// A program of NVIDIA's runtime library: shared where it is given its path, else linked in.
#include <dlfcn.h>
#include <stdio.h>

#ifdef STATIC
int cudaRuntimeGetVersion(int *version);
int cudaGetDeviceCount(int *count);
int cudaMalloc(void **at, size_t bytes);
#endif

typedef int (*Number)(int *);
typedef int (*Take)(void **, size_t);

int main(int count, char **words) {
#ifdef STATIC
    Number version = cudaRuntimeGetVersion, devices = cudaGetDeviceCount;
    Take take = cudaMalloc;
    (void)count;
    (void)words;
#else
    void *runtime = count > 1 ? dlopen(words[1], RTLD_NOW) : 0;
    if (!runtime) {
        printf("no runtime: %s\n", dlerror());
        return 1;
    }
    Number version = (Number)dlsym(runtime, "cudaRuntimeGetVersion");
    Number devices = (Number)dlsym(runtime, "cudaGetDeviceCount");
    Take take = (Take)dlsym(runtime, "cudaMalloc");
#endif
    int number = -1;
    void *at = 0;
    printf("version %d", version(&number));
    printf(" %d\n", number);
    printf("devices %d\n", devices(&number));
    printf("malloc %d\n", take(&at, (size_t)6 << 30));
    // What the runtime did not get, a program still gets of the same driver.
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    int (*total)(size_t *, int) = driver ? dlsym(driver, "cuDeviceTotalMem_v2") : 0;
    int (*init)(unsigned) = driver ? dlsym(driver, "cuInit") : 0;
    size_t bytes = 0;
    int began = init ? init(0) : -1;
    int told = total ? total(&bytes, 0) : -1;
    printf("total %d %d %zu\n", began, told, bytes >> 20);
    return 0;
}
