// The router on the host: logits, scores, top-k.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cpu/thread_pool.h"
#include "device/buffer.h"
#include "device/token_ops.h"

namespace epsweep {

class CpuRouter {
 public:
  // Arguments as TokenOps::router. The first call of a size allocates scratch (that is the warm-up
  // call); later ones do not.
  void run(ThreadPool& pool, const RouterOp& op, const Buffer& x, const Buffer& gate,
           std::span<const std::int32_t> prescribed, Buffer& own_choice, Buffer& weights);

 private:
  struct Scratch {
    Buffer rows;                // fp32 [block][hidden_dim], at the begin of a cache line
    Buffer sums;                // fp32, of gate_product()
    std::vector<float> logits;  // [block][num_experts], then the scores
    std::vector<float> biased;  // [num_experts]
    GroupScratch<float> groups;
  };
  void reserve(int num_workers, std::int64_t block, const RouterOp& op);
  static void choose(const RouterOp& op, std::span<const float> values, Scratch& scratch,
                     std::span<std::int32_t> chosen);

  std::vector<Scratch> scratch_;
};

}  // namespace epsweep
