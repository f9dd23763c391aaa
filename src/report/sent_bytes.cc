#include "report/sent_bytes.h"

namespace epsweep {
namespace {

// What travels beside the rows in sections of fixed capacity: of all pairs of ranks, and of ranks
// with themselves.
struct Padding {
  std::int64_t bytes = 0, self_bytes = 0;
};
Padding padding_of(const SweepPoint& point, const PointWorkload& work) {
  if (work.capacity_rows == 0) return {};
  const std::int64_t ranks = point.ep_size;
  const std::int64_t self_rows = ranks * work.capacity_rows * point.num_routings();
  return {.bytes = (ranks * self_rows - work.traffic.a_copies) * work.traffic.row_bytes,
          .self_bytes = (self_rows - work.traffic.a_self_copies) * work.traffic.row_bytes};
}

}  // namespace

void put_sent_bytes(const SweepPoint& point, const PointWorkload& work, Json& bytes) {
  const Traffic& traffic = work.traffic;
  const std::int64_t copies =
      point.exchange_unit == ExchangeUnit::rank ? traffic.b_copies : traffic.a_copies;
  const Padding padding = padding_of(point, work);
  for (const char* direction : {"dispatch", "combine"}) {
    bytes[direction]["sent_copies"] = copies;
    bytes[direction]["sent_bytes"] = copies * traffic.row_bytes;
    bytes[direction]["metadata_bytes"] = 0;
    bytes[direction]["padding_bytes"] = padding.bytes;
    bytes[direction]["padding_self_bytes"] = padding.self_bytes;
  }
  bytes["dispatch"]["metadata_bytes"] = work.metadata_bytes;
  const bool fixed = work.capacity_rows > 0;
  bytes["capacity_rows"] = fixed ? Json(work.capacity_rows) : Json(nullptr);
  bytes["row_counts"] = fixed ? "planned" : "exchanged";
}

std::string sent_bytes_formula() {
  return "what the exchange unit makes of the copies, self included: sent_copies is a_total with "
         "assignment, b_total with rank; sent_bytes = sent_copies * row_bytes. metadata_bytes: "
         "with rank dispatch also carries a slot and a router weight, 8 bytes, per (token, chosen "
         "expert), each pair of ranks' filled up to whole granules of gcd(row_bytes, 64) bytes; "
         "combine returns one partial sum per copy, in the dtype of the rows. padding_bytes: with "
         "a "
         "transport of fixed capacity every pair of ranks moves capacity_rows rows in every layer, "
         "ep_size^2 * layers * capacity_rows - a_total rows of them unused; padding_self_bytes: "
         "the "
         "part inside ranks, so remote bytes on the wire are (sent_bytes - a_self_bytes) + "
         "(padding_bytes - padding_self_bytes) + metadata_bytes. row_counts: what the host sizes "
         "GEMMs by: counts exchanged in the layer, or, where they stay on the device, those of the "
         "plan, to which the exchanged ones are compared outside of timing. With transport "
         "local_copy nothing is sent while it is timed: every rank copies the same bytes that it "
         "would receive";
}

}  // namespace epsweep
