#include "pipeline/rank_exchange.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/error.h"

namespace epsweep {
namespace {

std::int64_t sum(std::span<const std::int64_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

// A use as it travels.
struct Use {
  std::int32_t word = 0;  // use_word()
  float weight = 0;
};
static_assert(sizeof(Use) == kUseBytes);

// visit(use, its bytes) for the uses of all messages, whose host copies each begin a granule.
template <typename Visit>
void for_each_use(std::span<const std::int64_t> uses_of_rank, std::int64_t granule,
                  std::span<std::byte> host, const Visit& visit) {
  std::size_t use = 0;
  std::int64_t begin = 0;
  for (const std::int64_t uses : uses_of_rank) {
    std::byte* at = host.data() + begin;
    for (std::int64_t i = 0; i < uses; ++i, at += kUseBytes) visit(use++, at);
    begin += use_granules(uses, granule) * granule;
  }
}

}  // namespace

RankExchange::RankExchange(const ExchangeContext& context)
    : context_(context), granule_(granule_bytes(context.row_bytes())), counts_(context.work) {
  const RankWork& work = context.work;
  const std::int64_t received = work.max_recv_rows(), row_bytes = context.row_bytes();
  size_indices();
  make_messages(work.max_sent_copies(), std::ssize(counts_.slot_of_assignment), sent_);
  make_messages(work.max_recv_copies(), received, received_);
  returned_ = context.backend.make_buffer(work.max_sent_copies() * row_bytes);
  partial_ = context.backend.make_buffer(work.max_recv_copies() * row_bytes);
  by_expert_ = context.backend.make_buffer(received * row_bytes);
  ffn_out_ = context.backend.make_buffer(received * row_bytes);
  weight_of_use_ = context.backend.make_buffer(received * bytes_of(DType::fp32));
}

void RankExchange::make_messages(std::int64_t most_copies, std::int64_t most_uses,
                                 Messages& messages) {
  const auto ranks = static_cast<std::size_t>(context_.work.point.ep_size);
  // Every message may be padded.
  const std::int64_t granules = most_uses * kUseBytes / granule_ + context_.work.point.ep_size;
  messages.copies.resize(ranks);
  messages.granules.resize(ranks);
  messages.copy_at = HostIndex(most_copies, context_.backend);
  messages.use_at = HostIndex(granules, context_.backend);
  messages.host_uses.resize(static_cast<std::size_t>(granules * granule_));
  messages.uses = context_.backend.make_buffer(granules * granule_);
  messages.rows =
      context_.backend.make_buffer(most_copies * context_.row_bytes() + granules * granule_);
}

void RankExchange::size_indices() {
  const RankWork& work = context_.work;
  const auto ranks = static_cast<std::size_t>(work.point.ep_size);
  const auto own = counts_.slot_of_assignment.size();
  const auto received = static_cast<std::size_t>(work.max_recv_rows());
  for (const int slots : work.slots_of_rank) announced_per_rank_.push_back(slots + 1);
  send_announced_.resize(counts_.send_per_slot.size() + ranks);
  recv_announced_.resize(counts_.recv_per_slot.size() + ranks);
  next_copy_.resize(ranks);
  next_use_.resize(ranks);
  last_token_.resize(ranks);
  next_row_.resize(counts_.rows_per_expert.size());
  const auto index = [this](std::int64_t most) { return HostIndex(most, context_.backend); };
  token_of_copy_ = index(work.max_sent_copies());
  copies_of_token_ = index(work.max_sent_copies());
  first_of_token_ = index(work.own_tokens().size() + 1);
  row_of_use_ = index(work.max_recv_rows());
  row_at_ = index(work.max_recv_rows());
  first_use_of_copy_ = index(work.max_recv_copies() + 1);
  for (auto* per_use : {&assignment_of_use_, &sent_words_}) per_use->resize(own);
  for (auto* per_row : {&recv_words_, &copy_of_row_}) per_row->resize(received);
  const auto counts = [this](const std::vector<std::int64_t>& announced) {
    return context_.backend.make_buffer(std::ssize(announced) *
                                        static_cast<std::int64_t>(sizeof(std::int64_t)));
  };
  send_counts_ = counts(send_announced_);
  recv_counts_ = counts(recv_announced_);
  host_weights_.resize(std::max(own, received));
}

// The number of copies rides behind the counts per slot: one message per rank for both.
void RankExchange::announce(int routing) {
  const RankWork& work = context_.work;
  routing_ = routing;
  counts_.assign(work, routing);
  count_copies(work.placements[static_cast<std::size_t>(routing)], counts_.slot_of_assignment,
               work.point.model.top_k, last_token_, sent_.copies);
  auto slot = counts_.send_per_slot.cbegin();
  auto to = send_announced_.begin();
  for (std::size_t rank = 0; rank < sent_.copies.size(); ++rank) {
    to = std::copy_n(slot, work.slots_of_rank[rank], to);
    slot += work.slots_of_rank[rank];
    *to++ = sent_.copies[rank];
  }
  context_.backend.copy_from_host(send_announced_.data(), send_counts_, send_counts_.bytes());
  context_.transport.exchange_counts(context_.lane, send_counts_, recv_counts_,
                                     announced_per_rank_);
  context_.backend.copy_to_host(recv_counts_, recv_announced_.data(), recv_counts_.bytes());
  auto from = recv_announced_.cbegin();
  auto counts = counts_.recv_per_slot.begin();
  for (std::int64_t& copies : received_.copies) {
    counts = std::copy_n(from, work.num_own_slots(), counts);
    from += work.num_own_slots();
    copies = *from++;
  }
  counts_.sum(work);
  EPS_EXPECT(sum(received_.copies) <= work.max_recv_copies(),
             "more copies announced than the receive buffer holds");
  lay_out(counts_.send_rows, sent_);
  lay_out(counts_.recv_rows, received_);
}

void RankExchange::lay_out(std::span<const std::int64_t> uses, Messages& messages) {
  messages.num_copies = sum(messages.copies);
  messages.num_use_granules =
      lay_out_messages({.copies = messages.copies, .uses = uses}, context_.row_bytes(),
                       {.granules = messages.granules,
                        .copy_at = messages.copy_at.host,
                        .use_at = messages.use_at.host});
}

void RankExchange::pack(const Buffer& tokens, const Buffer& weights) {
  const SweepPoint& point = context_.work.point;
  next_copy_ = sent_.copies;
  next_use_ = counts_.send_rows;
  order_copies(context_.work.placements[static_cast<std::size_t>(routing_)],
               counts_.slot_of_assignment, point.model.top_k,
               {.next_copy = next_copy_, .next_use = next_use_, .last_token = last_token_},
               {.token_of_copy = token_of_copy_.host,
                .assignment_of_use = assignment_of_use_,
                .sent_uses = sent_words_,
                .first_of_token = first_of_token_.host,
                .copies_of_token = copies_of_token_.host});
  context_.backend.token_ops().move_rows(
      context_.lane,
      {.row_bytes = context_.row_bytes(),
       .in_stride_bytes = point.model.hidden_dim * bytes_of(row_dtype(point.dtype)),
       .out_stride_bytes = granule_,
       .source = token_of_copy_.upload(sent_.num_copies, context_.backend),
       .position = sent_.copy_at.upload(sent_.num_copies, context_.backend)},
      tokens, sent_.rows);
  pack_uses(weights);
}

// Router weights were there before the counts were exchanged: reading them waits for nothing.
void RankExchange::pack_uses(const Buffer& weights) {
  context_.backend.copy_to_host(weights, host_weights_.data(), weights.bytes());
  for_each_use(counts_.send_rows, granule_, sent_.host_uses, [&](std::size_t use, std::byte* to) {
    const auto assignment = static_cast<std::size_t>(assignment_of_use_[use]);
    const Use entry = {.word = sent_words_[use], .weight = host_weights_[assignment]};
    std::memcpy(to, &entry, sizeof(entry));
  });
  context_.backend.copy_from_host(sent_.host_uses.data(), sent_.uses,
                                  sent_.num_use_granules * granule_);
  context_.backend.token_ops().scatter_rows(
      context_.lane, sent_.uses, granule_, 1,
      sent_.use_at.upload(sent_.num_use_granules, context_.backend), granule_, sent_.rows);
}

void RankExchange::send() {
  context_.transport.all_to_all_v(
      context_.lane, sent_.rows, received_.rows,
      {.send = sent_.granules, .recv = received_.granules, .row_bytes = granule_});
}

const Buffer& RankExchange::expert_input() {
  unpack_uses();
  order_received();
  context_.backend.token_ops().move_rows(
      context_.lane,
      {.row_bytes = context_.row_bytes(),
       .in_stride_bytes = granule_,
       .out_stride_bytes = context_.row_bytes(),
       .source = row_at_.upload(counts_.num_recv_rows, context_.backend),
       .position = {}},
      received_.rows, by_expert_);
  return by_expert_;
}

// Which row repeats which copy is decided on the host, so the uses must have arrived.
void RankExchange::unpack_uses() {
  context_.backend.token_ops().gather_rows(
      context_.lane, received_.rows,
      received_.use_at.upload(received_.num_use_granules, context_.backend), granule_,
      received_.uses);
  context_.lane.synchronize();
  context_.backend.copy_to_host(received_.uses, received_.host_uses.data(),
                                received_.num_use_granules * granule_);
  for_each_use(counts_.recv_rows, granule_, received_.host_uses,
               [&](std::size_t use, const std::byte* from) {
                 Use entry;
                 std::memcpy(&entry, from, sizeof(entry));
                 recv_words_[use] = entry.word;
                 host_weights_[use] = entry.weight;
               });
  context_.backend.copy_from_host(host_weights_.data(), weight_of_use_,
                                  counts_.num_recv_rows * bytes_of(DType::fp32));
}

void RankExchange::order_received() {
  uses_fit_ = order_uses(of_rows(recv_words_),
                         {.copies = received_.copies,
                          .uses = counts_.recv_rows,
                          .rows_per_expert = counts_.rows_per_expert},
                         {.copy_of_row = of_rows(copy_of_row_),
                          .first_use_of_copy = first_use_of_copy_.host,
                          .row_of_use = of_rows(row_of_use_.host),
                          .next_row = next_row_});
  std::ranges::transform(of_rows(copy_of_row_), row_at_.host.begin(), [this](std::int32_t copy) {
    return received_.copy_at.host[static_cast<std::size_t>(copy)];
  });
}

void RankExchange::collect() {
  const SweepPoint& point = context_.work.point;
  first_use_of_copy_.upload(received_.num_copies + 1, context_.backend);
  row_of_use_.upload(counts_.num_recv_rows, context_.backend);
  context_.backend.token_ops().segment_reduce(context_.lane,
                                              {.in_dtype = row_dtype(point.dtype),
                                               .out_dtype = row_dtype(point.dtype),
                                               .cols = point.model.expert_io_dim,
                                               .segments = received_.num_copies,
                                               .first = &first_use_of_copy_.device(),
                                               .row = &row_of_use_.device(),
                                               .weights = &weight_of_use_},
                                              ffn_out_, partial_);
}

void RankExchange::send_back() {
  context_.transport.all_to_all_v(
      context_.lane, partial_, returned_,
      {.send = received_.copies, .recv = sent_.copies, .row_bytes = context_.row_bytes()});
}

// The weights were applied where the experts are.
void RankExchange::add_up(const Buffer& /*weights*/, Buffer& out) {
  const SweepPoint& point = context_.work.point;
  const std::int64_t tokens = context_.work.own_tokens().size();
  first_of_token_.upload(tokens + 1, context_.backend);
  copies_of_token_.upload(sent_.num_copies, context_.backend);
  context_.backend.token_ops().segment_reduce(context_.lane,
                                              {.in_dtype = row_dtype(point.dtype),
                                               .out_dtype = DType::fp32,
                                               .cols = point.model.expert_io_dim,
                                               .segments = tokens,
                                               .first = &first_of_token_.device(),
                                               .row = &copies_of_token_.device(),
                                               .weights = nullptr},
                                              returned_, out);
}

bool RankExchange::counts_match_plan(int routing) const {
  const auto at = static_cast<std::size_t>(routing);
  const RankDispatch& plan = context_.work.rank_dispatch[at];
  const auto rows = static_cast<std::size_t>(counts_.num_recv_rows);
  const auto copies = static_cast<std::size_t>(received_.num_copies);
  return uses_fit_ && counts_.match(context_.work.dispatch[at]) &&
         sent_.copies == plan.send_copies && received_.copies == plan.recv_copies &&
         std::ranges::equal(std::span(copy_of_row_).first(rows), plan.copy_of_row) &&
         std::ranges::equal(std::span(row_of_use_.host).first(rows), plan.row_of_use) &&
         std::ranges::equal(std::span(first_use_of_copy_.host).first(copies + 1),
                            plan.first_use_of_copy);
}

void RankExchange::poison() {
  for (Buffer* buffer : {&sent_.rows, &sent_.uses, &received_.rows, &received_.uses, &by_expert_,
                         &ffn_out_, &partial_, &returned_, &weight_of_use_}) {
    context_.backend.poison(*buffer);
  }
}

}  // namespace epsweep
