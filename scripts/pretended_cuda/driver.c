// CUDA's driver as far as a growing segment asks for it: addresses first, pages later.
#include <cuda.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/mman.h>

// They are the runtime's, which is loaded before.
static size_t* capacity(void) { return dlsym(RTLD_DEFAULT, "capacity"); }
static size_t* used(void) { return dlsym(RTLD_DEFAULT, "used"); }
struct Pages { size_t size; int device; };

CUresult cuInit(unsigned flags) { return CUDA_SUCCESS; }
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  *flags = 0;
  *active = device == 0 || used()[device] > 0;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  *context = (CUcontext)8;
  return CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext* context) { *context = (CUcontext)8; return CUDA_SUCCESS; }
CUresult cuCtxSetCurrent(CUcontext context) { return CUDA_SUCCESS; }
CUresult cuDeviceGet(CUdevice* device, int number) { *device = number; return CUDA_SUCCESS; }
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute what, CUdevice device) {
  *value = 1;
  return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult error, const char** said) {
  *said = "the pretended driver";
  return CUDA_SUCCESS;
}
CUresult cuMemGetInfo(size_t* free_, size_t* total) {
  *total = *capacity();
  *free_ = *capacity() - used()[0];
  return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr* at, size_t size, size_t alignment, CUdeviceptr wish,
                             unsigned long long flags) {
  void* (*take)(size_t, int) = dlsym(RTLD_DEFAULT, "take");
  void* found = take(size, PROT_NONE);
  *at = (CUdeviceptr)found;
  return found == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}
CUresult cuMemAddressFree(CUdeviceptr at, size_t size) {
  munmap((void*)at, size);
  return CUDA_SUCCESS;
}
CUresult cuMemCreate(CUmemGenericAllocationHandle* pages, size_t size,
                     const CUmemAllocationProp* where, unsigned long long flags) {
  int device = where->location.id;
  if (used()[device] + size > *capacity()) return CUDA_ERROR_OUT_OF_MEMORY;
  used()[device] += size;
  struct Pages* made = malloc(sizeof *made);
  *made = (struct Pages){size, device};
  *pages = (CUmemGenericAllocationHandle)made;
  return CUDA_SUCCESS;
}
CUresult cuMemRelease(CUmemGenericAllocationHandle pages) {
  struct Pages* made = (struct Pages*)pages;
  used()[made->device] -= made->size;
  free(made);
  return CUDA_SUCCESS;
}
CUresult cuMemMap(CUdeviceptr at, size_t size, size_t offset, CUmemGenericAllocationHandle pages,
                  unsigned long long flags) {
  mprotect((void*)at, size, PROT_READ | PROT_WRITE);
  return CUDA_SUCCESS;
}
CUresult cuMemUnmap(CUdeviceptr at, size_t size) { return CUDA_SUCCESS; }
CUresult cuMemSetAccess(CUdeviceptr at, size_t size, const CUmemAccessDesc* who, size_t count) {
  return CUDA_SUCCESS;
}
CUresult cuMemGetAllocationGranularity(size_t* size, const CUmemAllocationProp* where,
                                       CUmemAllocationGranularity_flags flags) {
  *size = 2 << 20;
  return CUDA_SUCCESS;
}
