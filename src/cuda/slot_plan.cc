#include "cuda/slot_plan.h"

#include "cuda/int32_limits.h"

namespace epsweep::cuda {

SlotPlan::SlotPlan(int num_experts)
    : parts_(static_cast<std::size_t>((num_experts + kSlotExperts - 1) / kSlotExperts) + 1) {}

void SlotPlan::start() {
  num_parts_ = 0;
  row_ = slot_ = 0;
  expert_ = 0;
  parts_[0].num_experts = 0;
  parts_[0].first_expert = 0;
}

void SlotPlan::add(std::int64_t rows, std::int64_t room) {
  ExpertSlots& part = parts_[num_parts_];
  part.begin[part.num_experts] = as_int32(row_, "rows of all experts");
  part.slot[part.num_experts] = as_int32(slot_, "padded rows of all experts");
  ++part.num_experts;
  ++expert_;
  row_ += rows;
  slot_ += room;
  if (part.num_experts == kSlotExperts) close_part();
}

// A part without rows is overwritten by the next one: there is nothing to launch.
void SlotPlan::close_part() {
  ExpertSlots& part = parts_[num_parts_];
  part.begin[part.num_experts] = as_int32(row_, "rows of all experts");
  as_int32(slot_, "padded rows of all experts");
  if (part.begin[part.num_experts] > part.begin[0]) ++num_parts_;
  parts_[num_parts_].num_experts = 0;
  parts_[num_parts_].first_expert = expert_;
}

void SlotPlan::finish() {
  if (parts_[num_parts_].num_experts > 0) close_part();
}

}  // namespace epsweep::cuda
