// Perfect balance at every EP size: the upper limit of what any placement could reach.
#include <cmath>
#include <cstdint>
#include <numbers>
#include <numeric>

#include "workload/distributions/load_router.h"

namespace epsweep {
namespace {

std::uint64_t multiply_mod(std::uint64_t a, std::uint64_t b, std::uint64_t modulus) {
  return static_cast<std::uint64_t>(static_cast<unsigned __int128>(a) * b % modulus);
}

// Multiples of it modulo `size` visit all residues and any run of them lies evenly: the coprime
// nearest to size / golden ratio.
std::uint64_t golden_multiplier(std::uint64_t size) {
  const auto centre =
      static_cast<std::uint64_t>(std::llround(static_cast<double>(size) / std::numbers::phi));
  for (std::uint64_t distance = 0;; ++distance) {
    if (std::gcd(centre + distance, size) == 1) return centre + distance;
    if (distance < centre && std::gcd(centre - distance, size) == 1) return centre - distance;
  }
}

// The A = C * top_k assignments lie in a row, expert after expert: place p belongs to expert
// floor(((p + 1) * E - 1) / A), so every run of L neighbouring experts has floor or ceil of
// L * A / E places, and ranks of equal width differ by at most one. The places of one token are C
// apart; an expert has at most C places, so they are distinct. Which places a token has is a golden
// ratio sequence over the tokens, so each run of tokens (a source rank) covers all experts evenly.
// `first_expert` turns the ring of experts and `first_place` that of tokens; both are random per
// layer and step and keep all of this true.
//
// A token's experts are E / top_k apart: it reaches more distinct ranks than a real router's
// tokens do. Balance of rows is exact; the number of distinct destinations is not typical.
struct RingRouter {
  std::uint64_t num_experts, top_k, num_tokens, multiplier, first_expert, first_place;

  void operator()(std::int64_t token, std::span<std::int32_t> experts) const {
    const std::uint64_t place =
        (multiply_mod(static_cast<std::uint64_t>(token), multiplier, num_tokens) + first_place) %
        num_tokens;
    for (std::uint64_t j = 0; j < top_k; ++j) {
      const std::uint64_t row_place = place + j * num_tokens;
      const std::uint64_t expert = ((row_place + 1) * num_experts - 1) / (num_tokens * top_k);
      experts[j] = static_cast<std::int32_t>((expert + first_expert) % num_experts);
    }
  }
};

// On the ring all of a token's experts have the same residue modulo any P that divides E / top_k,
// so under round-robin placement one rank would get them all. Here each of the top_k blocks of
// E / top_k experts is turned by one more than the block before it, which spreads them over all
// residues. A turned block still has floor or ceil of L * C * top_k / E places in every run of L
// experts, but a run over a block's end need not; see blocks_fit().
struct TurnedBlockRouter {
  std::uint64_t block, top_k, num_tokens, multiplier, first_expert, first_block, first_place;

  void operator()(std::int64_t token, std::span<std::int32_t> experts) const {
    const std::uint64_t place =
        (multiply_mod(static_cast<std::uint64_t>(token), multiplier, num_tokens) + first_place) %
        num_tokens;
    const std::uint64_t in_block = ((place + 1) * block - 1) / num_tokens + first_expert;
    for (std::uint64_t j = 0; j < top_k; ++j) {
      experts[j] =
          static_cast<std::int32_t>((j + first_block) % top_k * block + (in_block + j) % block);
    }
  }
};

// Whether the experts of every rank, at every EP size that divides E, are whole blocks or lie
// inside one.
bool blocks_fit(std::uint64_t num_experts, std::uint64_t top_k) {
  if (num_experts % top_k != 0) return false;
  for (std::uint64_t ep_size = 1; ep_size <= num_experts; ++ep_size) {
    if (num_experts % ep_size != 0) continue;
    if (top_k % ep_size != 0 && ep_size % top_k != 0) return false;
  }
  return true;
}

TokenRouter make(const RoutingContext& context) {
  const auto num_experts = static_cast<std::uint64_t>(context.num_experts);
  const auto num_tokens = static_cast<std::uint64_t>(context.num_tokens);
  if (num_tokens == 0) return [](std::int64_t, std::span<std::int32_t>) {};
  const RandomStream stream(context.seed, Stream::routing,
                            static_cast<std::uint64_t>(context.layer),
                            static_cast<std::uint64_t>(context.step));
  const auto top_k = static_cast<std::uint64_t>(context.top_k);
  const std::uint64_t multiplier = golden_multiplier(num_tokens);
  const std::uint64_t first_place = stream.below(1, num_tokens);
  if (blocks_fit(num_experts, top_k)) {
    const std::uint64_t block = num_experts / top_k;
    return TurnedBlockRouter{
        block,      top_k, num_tokens, multiplier, stream.below(0, block), stream.below(2, top_k),
        first_place};
  }
  return RingRouter{num_experts, top_k, num_tokens, multiplier, stream.below(0, num_experts),
                    first_place};
}

const bool registered = DistributionCatalog::instance().add(
    {"balanced",
     "rows per rank differ by at most one under contiguous placement at every EP size that divides "
     "num_experts; under round_robin where it divides top_k and num_experts / top_k too",
     {},
     make});

}  // namespace
}  // namespace epsweep
