#include "plan/load_search.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace epsweep {

void LoadSearch::end(std::int64_t tokens, LoadEnd how) {
  if (refused_ && tokens >= *refused_) return;
  EPS_EXPECT(!again_ || *again_ == tokens, "another load before one is measured again");
  const bool is_second = again_.has_value();
  again_.reset();
  switch (how) {
    case LoadEnd::admitted:
      admitted_ = std::max(admitted_.value_or(tokens), tokens);
      break;
    case LoadEnd::too_slow:
      if (is_second) {
        refuse(tokens, StopKind::latency_objective);
      } else {
        again_ = tokens;
      }
      break;
    case LoadEnd::kv_memory:
      refuse(tokens, StopKind::kv_memory);
      break;
    case LoadEnd::device_memory:
      refuse(tokens, StopKind::device_memory);
      break;
    case LoadEnd::no_answer:
      without_answer_.insert(tokens);
      break;
  }
}

void LoadSearch::refuse(std::int64_t tokens, StopKind kind) {
  refused_ = tokens;
  stopped_by_ = kind;
}

void LoadSearch::know_kv_room(std::int64_t most) {
  if (refused_ && most + 1 < *refused_) refuse(most + 1, StopKind::kv_memory);
}

std::optional<std::int64_t> LoadSearch::next_between() const {
  if (!resolution_ || !admitted_ || !refused_ || again_) return std::nullopt;
  const auto low = static_cast<double>(*admitted_), high = static_cast<double>(*refused_);
  if (*refused_ - *admitted_ <= 1 || is_resolved(high / low)) return std::nullopt;
  std::int64_t next = *refused_ - 1;
  if (stopped_by_ != StopKind::kv_memory) {
    next = std::clamp<std::int64_t>(std::llround(std::sqrt(low) * std::sqrt(high)), *admitted_ + 1,
                                    *refused_ - 1);
  }
  if (without_answer_.contains(next)) return std::nullopt;
  return next;
}

int LoadSearch::most_left() const {
  if (!next_between()) return 0;
  double ratio = static_cast<double>(*refused_) / static_cast<double>(*admitted_);
  int left = stopped_by_ == StopKind::kv_memory ? 1 : 0;
  for (; !is_resolved(ratio); ++left) ratio = std::sqrt(ratio);
  return left;
}

}  // namespace epsweep
