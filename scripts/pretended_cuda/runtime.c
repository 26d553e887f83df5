// CUDA's runtime as PyTorch's allocator asks for it, without a device: memory is an address space
// that counts, an event is done when its stream was told to finish, kernels do nothing.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { DEVICES = 2, STREAMS = 1024, PIECES = 100000 };
size_t capacity = 400UL << 20, used[DEVICES];
char* next_address = (char*)(1UL << 40);
static int streams;
static long clock_, finished[STREAMS];
static __thread int current;
static __thread cudaError_t last;
static struct Piece { void* at; size_t size; int device; } pieces[PIECES];
static int held;
struct Event { long when; int stream; };

void* take(size_t size, int protection) {
  void* at = next_address;
  next_address += size;
  return mmap(at, size, protection,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
}
// For the comparison: the number of a stream, and the moment at which its work is done.
int stream_number(cudaStream_t stream) { return (size_t)stream < 4096 ? 0 : *(int*)stream; }
void finish(int stream) { finished[stream] = clock_; }

cudaError_t cudaMalloc(void** at, size_t size) {
  if (used[current] + size > capacity) return last = cudaErrorMemoryAllocation;
  *at = take(size, PROT_READ | PROT_WRITE);
  pieces[held++] = (struct Piece){*at, size, current};
  used[current] += size;
  return cudaSuccess;
}
cudaError_t cudaFree(void* at) {
  for (int i = 0; i < held; ++i)
    if (pieces[i].at == at) {
      used[pieces[i].device] -= pieces[i].size;
      munmap(at, pieces[i].size);
      pieces[i] = pieces[--held];
      break;
    }
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free_, size_t* total) {
  *free_ = capacity - used[current];
  *total = capacity;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) { *count = DEVICES; return cudaSuccess; }
cudaError_t cudaGetDevice(int* device) { *device = current; return cudaSuccess; }
cudaError_t cudaSetDevice(int device) { current = device; return cudaSuccess; }
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp* is, int device) {
  memset(is, 0, sizeof *is);
  strcpy(is->name, "pretended");
  is->totalGlobalMem = capacity;
  is->major = 9;
  is->multiProcessorCount = 4;
  is->warpSize = 32;
  is->maxThreadsPerMultiProcessor = 2048;
  is->maxThreadsPerBlock = 1024;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, enum cudaDeviceAttr what, int device) {
  *value = 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int a, int b) { *can = 0; return cudaSuccess; }
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* most) {
  *least = 0;
  *most = -5;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize(void) {
  for (int i = 0; i < STREAMS; ++i) finish(i);
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) { *version = 13020; return cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { *version = 13020; return cudaSuccess; }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  *event = calloc(1, sizeof(struct Event));
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t event) { free(event); return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  *(struct Event*)event = (struct Event){++clock_, stream_number(stream)};
  return cudaSuccess;
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  return cudaEventRecord(event, stream);
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  struct Event* of = (struct Event*)event;
  return of->when > finished[of->stream] ? cudaErrorNotReady : cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  struct Event* of = (struct Event*)event;
  if (finished[of->stream] < of->when) finished[of->stream] = of->when;
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t a, cudaEvent_t b) {
  *ms = 0;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  int* number = malloc(sizeof(int));
  *number = ++streams % STREAMS;
  *stream = (cudaStream_t)number;
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus* is) {
  *is = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus* is,
                                     unsigned long long* id, cudaGraph_t* graph,
                                     const cudaGraphNode_t** nodes,
                                     const cudaGraphEdgeData** edges, size_t* count) {
  return cudaStreamIsCapturing(stream, is);
}
cudaError_t cudaStreamQuery(cudaStream_t stream) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  finish(stream_number(stream));
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode* mode) {
  return cudaSuccess;
}

cudaError_t cudaGetLastError(void) {
  cudaError_t was = last;
  last = cudaSuccess;
  return was;
}
cudaError_t cudaPeekAtLastError(void) { return last; }
const char* cudaGetErrorName(cudaError_t error) { return "cudaErrorMemoryAllocation"; }
const char* cudaGetErrorString(cudaError_t error) { return "out of memory"; }

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
  memcpy(to, from, size);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t size, cudaStream_t stream) {
  memset(to, value, size);
  return cudaSuccess;
}
cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                             size_t shared, cudaStream_t stream) {
  return cudaSuccess;
}
static int nothing(void) { return 1; }
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** entry, unsigned version,
                                             unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult* found) {
  static void* driver;
  char newer[99];
  if (!driver) driver = dlopen("libcuda.so.1", RTLD_NOW);
  snprintf(newer, sizeof newer, "%s_v2", name);
  *entry = dlsym(driver, name);
  if (!*entry) *entry = dlsym(driver, newer);
  if (!*entry) *entry = (void*)nothing;
  if (found) *found = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
