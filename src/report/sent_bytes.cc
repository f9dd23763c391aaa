#include "report/sent_bytes.h"

namespace epsweep {

void put_sent_bytes(const SweepPoint& point, const PointWorkload& work, Json& bytes) {
  const Traffic& traffic = work.traffic;
  const std::int64_t copies =
      point.exchange_unit == ExchangeUnit::rank ? traffic.b_copies : traffic.a_copies;
  for (const char* direction : {"dispatch", "combine"}) {
    bytes[direction]["sent_copies"] = copies;
    bytes[direction]["sent_bytes"] = copies * traffic.row_bytes;
    bytes[direction]["metadata_bytes"] = 0;
  }
  bytes["dispatch"]["metadata_bytes"] = work.metadata_bytes;
}

std::string sent_bytes_formula() {
  return "what the exchange unit makes of the copies, self included: sent_copies is a_total with "
         "assignment, b_total with rank; sent_bytes = sent_copies * row_bytes. metadata_bytes: "
         "with rank dispatch also carries a slot and a router weight, 8 bytes, per (token, chosen "
         "expert), each pair of ranks' filled up to whole granules of gcd(row_bytes, 64) bytes; "
         "combine returns one partial sum per copy, in the dtype of the rows";
}

}  // namespace epsweep
