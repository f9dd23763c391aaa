// The one owner of a C-style handle: moves by exchange, destroys once.
#pragma once

#include <utility>

namespace epsweep {

// Traits: using value_type; static value_type null(); static void destroy(value_type) noexcept.
// destroy() must not communicate: collective teardown belongs in a close() on the success path.
template <typename Traits>
class UniqueHandle {
 public:
  using value_type = typename Traits::value_type;

  UniqueHandle() = default;
  explicit UniqueHandle(value_type value) : value_(value) {}
  ~UniqueHandle() { reset(); }
  UniqueHandle(const UniqueHandle&) = delete;
  UniqueHandle& operator=(const UniqueHandle&) = delete;
  UniqueHandle(UniqueHandle&& other) noexcept : value_(other.release()) {}
  UniqueHandle& operator=(UniqueHandle&& other) noexcept {
    if (this != &other) {
      reset();
      value_ = other.release();
    }
    return *this;
  }

  value_type get() const { return value_; }
  explicit operator bool() const { return value_ != Traits::null(); }
  value_type release() { return std::exchange(value_, Traits::null()); }
  void reset() {
    if (value_ != Traits::null()) Traits::destroy(release());
  }

 private:
  value_type value_ = Traits::null();
};

}  // namespace epsweep
