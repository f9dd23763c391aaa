// Exchange unit `rank`: a token row is sent once per distinct destination rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "pipeline/exchange_path.h"

namespace epsweep {

// A copy travels with its uses (local slot and router weight of each assignment it feeds). The
// receiver repeats it once per use in expert order, and adds the weighted results of a copy in
// choice order, in fp32, to one partial sum, which goes back in the point's dtype: as many bytes as
// the copy had. The source adds the partial sums of a token in fp32, by ascending rank.
class RankExchange {
 public:
  explicit RankExchange(const ExchangeContext& context);

  void announce(int routing);
  void pack(const Buffer& tokens, const Buffer& weights);
  void send();
  const Buffer& expert_input();
  Buffer& expert_output() { return ffn_out_; }
  void collect();
  void send_back();
  void add_up(const Buffer& weights, Buffer& out);

  const RowCounts& counts() const { return counts_; }
  bool counts_match_plan(int routing) const;
  void poison();

 private:
  // One direction of dispatch: its messages, as they lie in the buffer, and their uses.
  struct Messages {
    std::vector<std::int64_t> copies;    // [ep_size]
    std::vector<std::int64_t> granules;  // [ep_size]
    HostIndex copy_at, use_at;
    std::vector<std::byte> host_uses;  // without the rows between them
    std::int64_t num_copies = 0, num_use_granules = 0;
    Buffer rows, uses;
  };
  void make_messages(std::int64_t most_copies, std::int64_t most_uses, Messages& messages);
  void lay_out(std::span<const std::int64_t> uses, Messages& messages);
  void size_indices();
  void pack_uses(const Buffer& weights);
  void unpack_uses();
  void order_received();
  // The part of a per-row array that the layer at hand uses.
  template <typename T>
  std::span<T> of_rows(std::vector<T>& per_row) const {
    return std::span(per_row).first(static_cast<std::size_t>(counts_.num_recv_rows));
  }

  ExchangeContext context_;
  std::int64_t granule_ = 0;
  int routing_ = 0;  // announced last
  RowCounts counts_;
  // Counts per slot with the number of copies behind them, for every rank.
  std::vector<int> announced_per_rank_;
  std::vector<std::int64_t> send_announced_, recv_announced_;
  Messages sent_, received_;
  // Scratch and results of the sorts, as in rank_dispatch.h.
  std::vector<std::int64_t> next_copy_, next_use_, next_row_;
  std::vector<std::int32_t> last_token_;
  std::vector<std::int32_t> assignment_of_use_, sent_words_, recv_words_, copy_of_row_;
  HostIndex token_of_copy_, first_of_token_, copies_of_token_, first_use_of_copy_, row_of_use_;
  HostIndex row_at_;                  // [rows], granule in received_ of the copy of each row
  Buffer send_counts_, recv_counts_;  // what is announced, int64
  std::vector<float> host_weights_;   // router weights; of own assignments, then of received rows
  bool uses_fit_ = true;

  Buffer by_expert_, ffn_out_, partial_, returned_, weight_of_use_;
};

static_assert(ExchangePath<RankExchange>);

}  // namespace epsweep
