// Exchange unit `assignment`: a token row is sent once per (token, chosen expert).
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/exchange_path.h"

namespace epsweep {

// Rows travel in the send order of dispatch_plan.h, results come back the same way, and the source
// weighs and adds them in order of choice.
class AssignmentExchange {
 public:
  explicit AssignmentExchange(const ExchangeContext& context);

  void announce(int layer);
  void pack(const Buffer& tokens, const Buffer& weights);
  void send();
  const Buffer& expert_input();
  Buffer& expert_output();
  void collect();
  void send_back();
  void add_up(const Buffer& weights, Buffer& out);

  const RowCounts& counts() const { return counts_; }
  bool counts_match_plan(int layer) const;
  void poison();

 private:
  std::span<const std::int32_t> expert_order() const {
    return std::span(expert_order_).first(static_cast<std::size_t>(counts_.num_recv_rows));
  }

  ExchangeContext context_;
  RowCounts counts_;
  std::vector<std::int32_t> position_;      // [own tokens * top_k]
  std::vector<std::int32_t> expert_order_;  // [most received rows]
  bool regroup_ = false;                    // whether expert order differs from receive order
  Buffer send_, recv_, by_expert_, ffn_out_, to_return_, returned_;
};

static_assert(ExchangePath<AssignmentExchange>);

}  // namespace epsweep
