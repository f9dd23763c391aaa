// A piece of device memory that owns itself.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace epsweep {

class Buffer {
 public:
  Buffer() = default;
  // The deleter knows where the memory came from.
  Buffer(void* data, std::int64_t bytes, std::function<void(void*)> deleter)
      : data_(data, std::move(deleter)), bytes_(bytes) {}

  std::int64_t bytes() const { return bytes_; }
  void* data() { return data_.get(); }
  const void* data() const { return data_.get(); }
  // As elements of host-accessible memory.
  template <typename T>
  std::span<T> as() {
    return {static_cast<T*>(data_.get()), static_cast<std::size_t>(bytes_) / sizeof(T)};
  }
  template <typename T>
  std::span<const T> as() const {
    return {static_cast<const T*>(data_.get()), static_cast<std::size_t>(bytes_) / sizeof(T)};
  }

 private:
  std::unique_ptr<void, std::function<void(void*)>> data_{nullptr, [](void*) {}};
  std::int64_t bytes_ = 0;
};

}  // namespace epsweep
