// The k largest of a row of values, over all of it or within expert groups: one tie rule for the
// reference router in double and the timed one in float.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace epsweep {

// What a group of experts is worth.
enum class GroupScore {
  max,       // its largest value (DeepSeek-V2)
  top2_sum,  // the sum of its two largest values (DeepSeek-V3 and kin)
};

// The values fall into num_groups runs of equal length, and only those in the topk_groups best runs
// may be chosen; ties go to the lower group.
struct GroupLimit {
  int num_groups = 1;
  int topk_groups = 1;
  GroupScore score = GroupScore::max;

  bool limits() const { return topk_groups < num_groups; }
};

// Fills `chosen` with the indices of the largest values offered, largest first.
template <typename T>
class TopKIndices {
 public:
  TopKIndices(std::span<const T> values, std::span<std::int32_t> chosen)
      : values_(values), chosen_(chosen) {}

  // Indices [begin, end), after all lower ones: an equal value that came earlier stays ahead.
  void offer(std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      std::size_t place = filled_;
      if (filled_ == chosen_.size()) {
        if (filled_ == 0 || !beats(i, filled_ - 1)) continue;
        --place;
      } else {
        ++filled_;
      }
      for (; place > 0 && beats(i, place - 1); --place) chosen_[place] = chosen_[place - 1];
      chosen_[place] = static_cast<std::int32_t>(i);
    }
  }

 private:
  bool beats(std::size_t i, std::size_t place) const {
    return values_[i] > values_[static_cast<std::size_t>(chosen_[place])];
  }

  std::span<const T> values_;
  std::span<std::int32_t> chosen_;
  std::size_t filled_ = 0;
};

// Writes the chosen.size() indices of the largest values, largest first, ties to the lower index. A
// NaN ranks after everything that came before it.
template <typename T>
void top_k_indices(std::span<const T> values, std::span<std::int32_t> chosen) {
  TopKIndices<T>(values, chosen).offer(0, values.size());
}

template <typename T>
T group_score(std::span<const T> group, GroupScore kind) {
  T first = group[0];
  if (kind == GroupScore::max || group.size() == 1) {
    for (const T value : group) first = value > first ? value : first;
    return first;
  }
  T second = group[1];
  if (second > first) std::swap(first, second);
  for (const T value : group.subspan(2)) {
    if (value > first) {
      second = first;
      first = value;
    } else if (value > second) {
      second = value;
    }
  }
  return first + second;
}

// Room for limited_top_k(), so that repeated calls allocate nothing.
template <typename T>
struct GroupScratch {
  std::vector<T> scores;
  std::vector<std::int32_t> kept;

  void reserve(const GroupLimit& limit) {
    scores.resize(static_cast<std::size_t>(limit.num_groups));
    kept.resize(static_cast<std::size_t>(limit.topk_groups));
  }
};

// The groups that the limit keeps, into scratch.kept, ascending. num_groups divides values.size(),
// and `scratch` is reserved for this limit.
template <typename T>
void keep_best_groups(std::span<const T> values, const GroupLimit& limit,
                      GroupScratch<T>& scratch) {
  const std::size_t group_size = values.size() / static_cast<std::size_t>(limit.num_groups);
  for (std::size_t group = 0; group < scratch.scores.size(); ++group) {
    scratch.scores[group] =
        group_score(values.subspan(group * group_size, group_size), limit.score);
  }
  top_k_indices(std::span<const T>(scratch.scores), std::span(scratch.kept));
  std::sort(scratch.kept.begin(), scratch.kept.end());
}

// top_k_indices() of the values of some groups, in ascending order, which hold chosen.size() values
// or more.
template <typename T>
void top_k_of_groups(std::span<const T> values, std::size_t group_size,
                     std::span<const std::int32_t> groups, std::span<std::int32_t> chosen) {
  TopKIndices<T> top(values, chosen);
  for (const std::int32_t group : groups) {
    const std::size_t begin = static_cast<std::size_t>(group) * group_size;
    top.offer(begin, begin + group_size);
  }
}

// top_k_indices() of what the group limit leaves; conditions as above.
template <typename T>
void limited_top_k(std::span<const T> values, const GroupLimit& limit, GroupScratch<T>& scratch,
                   std::span<std::int32_t> chosen) {
  if (!limit.limits()) return top_k_indices(values, chosen);
  keep_best_groups(values, limit, scratch);
  top_k_of_groups(values, values.size() / static_cast<std::size_t>(limit.num_groups),
                  std::span<const std::int32_t>(scratch.kept), chosen);
}

}  // namespace epsweep
