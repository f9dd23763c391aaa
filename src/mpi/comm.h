// A communicator as a value, with the few checked collectives the harness needs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <mpi.h>

#include "base/unique_handle.h"

namespace epsweep {

// Throws RunError "what: MPI's text" if the code is not MPI_SUCCESS.
void check_mpi(int code, const char* what);

// Owns a communicator made by split(); borrows MPI_COMM_WORLD. All methods but rank(), size() and
// raw() are collective over the communicator. Not freed by the destructor: see close().
class Comm {
 public:
  static Comm world();

  int rank() const { return rank_; }
  int size() const { return size_; }
  MPI_Comm raw() const { return comm_; }

  // Ranks with the same color share a communicator, ordered by key. Negative color: the rank gets
  // an empty Comm (size 0).
  Comm split(int color, int key) const;
  // Ranks that share memory, i.e. a host.
  Comm split_by_host() const;
  // Frees an owned communicator; by all its ranks at the same place.
  void close();

  void barrier() const;
  // Like barrier(), but ranks that wait sleep between looks, so that idle ranks leave their core to
  // working ones. Slower to wake: up to 1 ms for each of the barrier's log2(size) rounds.
  void patient_barrier() const;

  std::int64_t all_max(std::int64_t value) const;
  // Of each of the values, in place; as many on every rank.
  void all_max(std::span<double> values) const;
  std::int64_t all_min(std::int64_t value) const;
  std::int64_t all_sum(std::int64_t value) const;
  double all_sum(double value) const;

  void broadcast(std::span<std::int64_t> values, int root) const;
  void broadcast(std::span<double> values, int root) const;
  std::string broadcast(const std::string& text, int root) const;
  // Everybody's value, by rank.
  std::vector<std::int64_t> all_gather(std::int64_t value) const;
  // Everybody's text, by rank; empty on ranks other than root.
  std::vector<std::string> gather(const std::string& text, int root) const;
  // The text of the lowest rank that has one, on every rank; empty if all are.
  std::string first_text(const std::string& own) const;
  // Everybody's values one after the other, by rank (lengths may differ); empty on ranks other than
  // root. Messages past 2^31-1 elements are split.
  std::vector<double> gather(std::span<const double> values, int root) const;
  std::vector<std::int64_t> gather(std::span<const std::int64_t> values, int root) const;

 private:
  Comm(MPI_Comm comm, bool owned);
  Comm() = default;
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 0;
  bool owned_ = false;
};

}  // namespace epsweep
