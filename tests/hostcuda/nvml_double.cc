// A driver's libnvidia-ml.so.1 with one device and no temperature sensor.
#include <cstring>

extern "C" {

int nvmlInit_v2() {
  return 0;
}
int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  static int only;
  *device = &only;
  return std::strcmp(uuid, "GPU-known") == 0 ? 0 : 6;  // NVML_ERROR_NOT_FOUND
}
int nvmlDeviceGetClockInfo(void*, int clock, unsigned* mhz) {
  *mhz = clock == 1 ? 1980 : 3201;
  return 0;
}
int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  *milliwatts = 345600;
  return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* reasons) {
  *reasons = 4;
  return 0;
}

}  // extern "C"
