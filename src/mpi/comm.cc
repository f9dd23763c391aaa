#include "mpi/comm.h"

#include <algorithm>
#include <numeric>
#include <type_traits>

#include <time.h>

#include "base/error.h"
#include "mpi/chunked_gather.h"

namespace epsweep {
namespace {

// Below the tags of the exchanges (src/cpu), so that neither takes the other's messages.
constexpr int kGatherTag = 11;

template <typename T>
MPI_Datatype mpi_type() {
  if constexpr (std::is_same_v<T, double>) return MPI_DOUBLE;
  if constexpr (std::is_same_v<T, std::int64_t>) return MPI_INT64_T;
  if constexpr (std::is_same_v<T, char>) return MPI_CHAR;
}

template <typename T>
T all_reduce(MPI_Comm comm, T value, MPI_Op operation) {
  T result{};
  check_mpi(MPI_Allreduce(&value, &result, 1, mpi_type<T>(), operation, comm), "all-reduce");
  return result;
}

// Calls move(begin, count) for pieces of at most `chunk` elements; not at all for none.
template <typename Move>
void for_each_chunk(std::int64_t total, std::int64_t chunk, const Move& move) {
  for (std::int64_t begin = 0; begin < total; begin += chunk) {
    move(begin, static_cast<int>(std::min(chunk, total - begin)));
  }
}

template <typename T>
void broadcast_in_chunks(MPI_Comm comm, std::span<T> values, int root) {
  for_each_chunk(static_cast<std::int64_t>(values.size()), kMaxMessageElements,
                 [&](std::int64_t begin, int count) {
                   check_mpi(MPI_Bcast(values.data() + begin, count, mpi_type<T>(), root, comm),
                             "broadcast");
                 });
}

MPI_Comm with_returned_errors(MPI_Comm comm) {
  check_mpi(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "error handler of a communicator");
  return comm;
}

}  // namespace

void check_mpi(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) {
    throw RunError(std::string(what) + ": MPI error code " + std::to_string(code));
  }
  throw RunError(std::string(what) + ": " + text);
}

Comm::Comm(MPI_Comm comm, bool owned) : comm_(comm), owned_(owned) {
  check_mpi(MPI_Comm_rank(comm_, &rank_), "rank in a communicator");
  check_mpi(MPI_Comm_size(comm_, &size_), "size of a communicator");
}

Comm Comm::world() {
  return Comm(MPI_COMM_WORLD, false);
}

Comm Comm::split(int color, int key) const {
  MPI_Comm part = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split(comm_, color < 0 ? MPI_UNDEFINED : color, key, &part),
            "splitting a communicator");
  return part == MPI_COMM_NULL ? Comm() : Comm(with_returned_errors(part), true);
}

Comm Comm::split_by_host() const {
  MPI_Comm part = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &part),
            "splitting a communicator by host");
  return Comm(with_returned_errors(part), true);
}

void Comm::close() {
  if (owned_ && comm_ != MPI_COMM_NULL) {
    check_mpi(MPI_Comm_free(&comm_), "freeing a communicator");
  }
  *this = Comm();
}

void Comm::barrier() const {
  check_mpi(MPI_Barrier(comm_), "barrier");
}

void Comm::patient_barrier() const {
  constexpr long kFirstSleepNs = 50'000, kLongestSleepNs = 1'000'000;
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Ibarrier(comm_, &request), "patient barrier");
  int done = 0;
  for (long sleep_ns = kFirstSleepNs;; sleep_ns = std::min(2 * sleep_ns, kLongestSleepNs)) {
    check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "patient barrier");
    if (done != 0) return;
    const timespec pause{0, sleep_ns};
    nanosleep(&pause, nullptr);  // a signal cuts it short, which does no harm
  }
}

std::int64_t Comm::all_max(std::int64_t value) const {
  return all_reduce(comm_, value, MPI_MAX);
}
void Comm::all_max(std::span<double> values) const {
  for_each_chunk(static_cast<std::int64_t>(values.size()), kMaxMessageElements,
                 [&](std::int64_t begin, int count) {
                   check_mpi(MPI_Allreduce(MPI_IN_PLACE, values.data() + begin, count, MPI_DOUBLE,
                                           MPI_MAX, comm_),
                             "all-reduce");
                 });
}
std::int64_t Comm::all_min(std::int64_t value) const {
  return all_reduce(comm_, value, MPI_MIN);
}
std::int64_t Comm::all_sum(std::int64_t value) const {
  return all_reduce(comm_, value, MPI_SUM);
}
double Comm::all_sum(double value) const {
  return all_reduce(comm_, value, MPI_SUM);
}

void Comm::broadcast(std::span<std::int64_t> values, int root) const {
  broadcast_in_chunks(comm_, values, root);
}

void Comm::broadcast(std::span<double> values, int root) const {
  broadcast_in_chunks(comm_, values, root);
}

std::string Comm::broadcast(const std::string& text, int root) const {
  auto length = static_cast<std::int64_t>(text.size());
  broadcast(std::span(&length, 1), root);
  std::string result = rank_ == root ? text : std::string(static_cast<std::size_t>(length), '\0');
  broadcast_in_chunks(comm_, std::span<char>(result), root);
  return result;
}

std::vector<std::int64_t> Comm::all_gather(std::int64_t value) const {
  std::vector<std::int64_t> result(static_cast<std::size_t>(size_));
  check_mpi(MPI_Allgather(&value, 1, MPI_INT64_T, result.data(), 1, MPI_INT64_T, comm_),
            "all-gather");
  return result;
}

std::vector<std::string> Comm::gather(const std::string& text, int root) const {
  const auto parts =
      gather_in_chunks(*this, std::span<const char>(text), root, kMaxMessageElements);
  std::vector<std::string> result;
  auto begin = parts.values.begin();
  for (const std::int64_t count : parts.counts) {
    result.emplace_back(begin, begin + count);
    begin += count;
  }
  return result;
}

std::string Comm::first_text(const std::string& own) const {
  std::string first;
  for (const std::string& text : gather(own, 0)) {
    if (first.empty()) first = text;
  }
  return broadcast(first, 0);
}

std::vector<double> Comm::gather(std::span<const double> values, int root) const {
  return gather_in_chunks(*this, values, root, kMaxMessageElements).values;
}

std::vector<std::int64_t> Comm::gather(std::span<const std::int64_t> values, int root) const {
  return gather_in_chunks(*this, values, root, kMaxMessageElements).values;
}

// Point to point rather than MPI_Gatherv, whose int displacements limit the sum over all ranks.
template <typename T>
GatheredParts<T> gather_in_chunks(const Comm& comm, std::span<const T> own, int root,
                                  std::int64_t chunk) {
  const auto own_count = static_cast<std::int64_t>(own.size());
  GatheredParts<T> result;
  if (comm.rank() == root) result.counts.resize(static_cast<std::size_t>(comm.size()));
  check_mpi(MPI_Gather(&own_count, 1, MPI_INT64_T, result.counts.data(), 1, MPI_INT64_T, root,
                       comm.raw()),
            "gather of lengths");
  if (comm.rank() != root) {
    for_each_chunk(own_count, chunk, [&](std::int64_t begin, int count) {
      check_mpi(MPI_Send(own.data() + begin, count, mpi_type<T>(), root, kGatherTag, comm.raw()),
                "gather, sending");
    });
    return result;
  }
  const auto total = std::accumulate(result.counts.begin(), result.counts.end(), std::int64_t{0});
  result.values.resize(static_cast<std::size_t>(total));
  T* part = result.values.data();
  for (int source = 0; source < comm.size(); ++source) {
    const std::int64_t part_count = result.counts[static_cast<std::size_t>(source)];
    if (source == root) std::copy(own.begin(), own.end(), part);
    for_each_chunk(source == root ? 0 : part_count, chunk, [&](std::int64_t begin, int count) {
      check_mpi(MPI_Recv(part + begin, count, mpi_type<T>(), source, kGatherTag, comm.raw(),
                         MPI_STATUS_IGNORE),
                "gather, receiving");
    });
    part += part_count;
  }
  return result;
}

template GatheredParts<char> gather_in_chunks(const Comm&, std::span<const char>, int,
                                              std::int64_t);
template GatheredParts<double> gather_in_chunks(const Comm&, std::span<const double>, int,
                                                std::int64_t);
template GatheredParts<std::int64_t> gather_in_chunks(const Comm&, std::span<const std::int64_t>,
                                                      int, std::int64_t);

}  // namespace epsweep
