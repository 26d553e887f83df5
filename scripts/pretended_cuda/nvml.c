// NVML, which the allocator asks who holds memory when it has none: nobody.
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char* place, void** device) {
  *device = (void*)8;
  return 0;
}
int nvmlDeviceGetComputeRunningProcesses(void* device, unsigned* count, void* processes) {
  *count = 0;
  return 0;
}
// It looks these up together with the rest, and does not call them.
int nvmlDeviceGetCount_v2(unsigned* count) { return 3; }
int nvmlDeviceGetHandleByIndex_v2(unsigned number, void** device) { return 3; }
int nvmlDeviceGetNvLinkRemoteDeviceType(void* device, unsigned link, int* kind) { return 3; }
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void* device, unsigned link, void* place) { return 3; }
int nvmlSystemGetCudaDriverVersion(int* version) { return 3; }
int nvmlSystemGetCudaDriverVersion_v2(int* version) { return 3; }
int nvmlDeviceGetGpuFabricInfoV(void* device, void* about) { return 3; }
int nvmlDeviceGetUUID(void* device, char* text, unsigned size) { return 3; }
const char* nvmlErrorString(int error) { return "the pretended NVML"; }
