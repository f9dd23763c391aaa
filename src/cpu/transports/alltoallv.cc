// MPI_Alltoallv, with whatever algorithm the MPI library picks for the group's size.
#include <cstddef>
#include <limits>
#include <map>
#include <string>

#include "base/error.h"
#include "cpu/exchange_rows.h"
#include "mpi/comm.h"
#include "mpi/message_set.h"

namespace epsweep {
namespace {

constexpr std::int64_t kMaxInt = std::numeric_limits<int>::max();

// MPI counts rows and displacements in int.
void to_int(std::span<const std::int64_t> values, const char* what, std::vector<int>& out) {
  for (std::size_t rank = 0; rank < values.size(); ++rank) {
    if (values[rank] > kMaxInt) {
      throw RunError(std::string("transport alltoallv: ") + what + " " + std::to_string(rank) +
                     " is " + std::to_string(values[rank]) + " rows, MPI_Alltoallv takes at most " +
                     std::to_string(kMaxInt) + "; transport pairwise has no such limit");
    }
    out[rank] = static_cast<int>(values[rank]);
  }
}

class Alltoallv : public Transport {
 public:
  explicit Alltoallv(const EpGroup& group)
      : group_(group), messages_(group), offsets_(group.ep_size()) {
    const auto size = static_cast<std::size_t>(group.ep_size());
    for (auto* values : {&send_counts_, &recv_counts_, &send_offsets_, &recv_offsets_}) {
      values->resize(size);
    }
  }

  void exchange_counts(Lane& /*lane*/, const Buffer& send, Buffer& recv,
                       std::span<const int> slots_of_rank) override {
    exchange_slot_counts(group_, messages_, send.as<std::int64_t>(), recv.as<std::int64_t>(),
                         slots_of_rank);
  }

  void all_to_all_v(Lane& /*lane*/, const Buffer& send, Buffer& recv,
                    const ExchangeRows& rows) override {
    fill_offsets(group_, send, recv, rows, offsets_);
    to_int(rows.send, "the count to rank", send_counts_);
    to_int(rows.recv, "the count from rank", recv_counts_);
    to_int(offsets_.send, "the displacement to rank", send_offsets_);
    to_int(offsets_.recv, "the displacement from rank", recv_offsets_);
    MPI_Datatype row = row_type(rows.row_bytes);
    check_mpi(
        MPI_Alltoallv(send.data(), send_counts_.data(), send_offsets_.data(), row, recv.data(),
                      recv_counts_.data(), recv_offsets_.data(), row, group_.comm().raw()),
        "MPI_Alltoallv of rows");
  }

  void close() override {
    for (auto& [bytes, type] : row_types_) check_mpi(MPI_Type_free(&type), "freeing a row type");
    row_types_.clear();
  }

 private:
  // Made on first use of a row size, which is in the warm-up.
  MPI_Datatype row_type(std::int64_t row_bytes) {
    const auto found = row_types_.find(row_bytes);
    if (found != row_types_.end()) return found->second;
    if (row_bytes > kMaxInt) {
      throw RunError("transport alltoallv: a row of " + std::to_string(row_bytes) +
                     " bytes, MPI takes at most " + std::to_string(kMaxInt));
    }
    MPI_Datatype type = MPI_DATATYPE_NULL;
    check_mpi(MPI_Type_contiguous(static_cast<int>(row_bytes), MPI_BYTE, &type), "row type");
    check_mpi(MPI_Type_commit(&type), "row type");
    return row_types_.emplace(row_bytes, type).first->second;
  }

  const EpGroup& group_;
  MessageSet messages_;
  RowOffsets offsets_;
  std::vector<int> send_counts_, recv_counts_, send_offsets_, recv_offsets_;
  std::map<std::int64_t, MPI_Datatype> row_types_;
};

const bool kAdded = TransportCatalog::instance().add(
    {.name = "alltoallv",
     .backend = "cpu",
     .summary = "MPI_Alltoallv; the MPI library picks the algorithm by group size",
     .make = [](const EpGroup& group, Fabric*) -> std::unique_ptr<Transport> {
       return std::make_unique<Alltoallv>(group);
     }});

}  // namespace
}  // namespace epsweep
