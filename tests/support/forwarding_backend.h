// The CPU backend with one thread, or another one, for tests that change or watch a part of it.
#pragma once

#include <memory>

#include "cpu/cpu_backend.h"
#include "device/backend.h"

namespace epsweep {

class ForwardingBackend : public Backend {
 public:
  ForwardingBackend() : ForwardingBackend(make_cpu_backend({.num_threads = 1})) {}
  explicit ForwardingBackend(std::unique_ptr<Backend> inner) : inner_(std::move(inner)) {}

  BackendInfo describe() const override { return inner_->describe(); }
  std::unique_ptr<Lane> make_lane() override { return inner_->make_lane(); }
  std::unique_ptr<Timeline> make_timeline(int num_marks) override {
    return inner_->make_timeline(num_marks);
  }
  Buffer make_buffer(std::int64_t bytes) override { return inner_->make_buffer(bytes); }
  void copy_to_host(const Buffer& from, void* to, std::int64_t bytes) override {
    inner_->copy_to_host(from, to, bytes);
  }
  void copy_from_host(const void* from, Buffer& to, std::int64_t bytes) override {
    inner_->copy_from_host(from, to, bytes);
  }
  void enqueue_copy(Lane& lane, const Buffer& from, Buffer& to, std::int64_t bytes) override {
    inner_->enqueue_copy(lane, from, to, bytes);
  }
  void fill(Buffer& to, const PayloadStream& stream, std::int64_t begin, std::int64_t count,
            DType dtype) override {
    inner_->fill(to, stream, begin, count, dtype);
  }
  void poison(Buffer& buffer) override { inner_->poison(buffer); }
  TokenOps& token_ops() override { return inner_->token_ops(); }

 private:
  std::unique_ptr<Backend> inner_;
};

}  // namespace epsweep
