// One layer on the ranks of a group, on either backend, with what passed on the way.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "mpi/ep_group.h"
#include "pipeline/exchange_refusal.h"
#include "support/forwarding_backend.h"
#include "support/forwarding_ops.h"
#include "support/layer_fixture.h"
#include "support/mpi_world.h"

namespace epsweep {

// Of one matrix in one layer: what the product was given, in expert order, and what it gave.
struct GemmSeen {
  std::vector<std::int64_t> rows_per_expert;
  std::vector<std::byte> in, out;
};

struct Seen {
  std::vector<std::vector<float>> router_weights;  // [layers][own tokens * top_k]
  std::vector<GemmSeen> gemms;                     // [layers][gate_up, down]
};

inline std::vector<std::byte> bytes_on_host(Backend& backend, Lane& lane, const Buffer& buffer,
                                            std::int64_t bytes) {
  lane.synchronize();
  std::vector<std::byte> host(static_cast<std::size_t>(bytes));
  backend.copy_to_host(buffer, host.data(), bytes);
  return host;
}

// Waits after every call it looks at, which hides missing waits: the tests of those do not use it.
class SeeingOps final : public ForwardingOps {
 public:
  SeeingOps(Backend& backend, TokenOps& inner, Seen& seen)
      : ForwardingOps(inner), backend_(backend), seen_(seen) {}

  void router(Lane& lane, const RouterOp& op, const Buffer& x, const Buffer& gate,
              const Buffer& prescribed, Buffer& own_choice, Buffer& weights) override {
    ForwardingOps::router(lane, op, x, gate, prescribed, own_choice, weights);
    const auto bytes = bytes_on_host(backend_, lane, weights, weights.bytes());
    std::vector<float> values(bytes.size() / sizeof(float));
    if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    seen_.router_weights.push_back(std::move(values));
  }

 private:
  Backend& backend_;
  Seen& seen_;
};

class SeeingBackend final : public ForwardingBackend {
 public:
  SeeingBackend(const std::string& name, Seen& seen)
      : ForwardingBackend(BackendCatalog::instance().at(name).make({.num_threads = 1})),
        ops_(*this, ForwardingBackend::token_ops(), seen) {}
  TokenOps& token_ops() override { return ops_; }

 private:
  SeeingOps ops_;
};

class SeenGemm final : public GroupedGemm {
 public:
  SeenGemm(std::unique_ptr<GroupedGemm> inner, const GemmShape& shape, Backend& backend, Seen& seen)
      : inner_(std::move(inner)), shape_(shape), backend_(backend), seen_(seen) {}

  void prepare(const WeightSource& weights) override { inner_->prepare(weights); }
  void warm(std::span<const std::int64_t> rows) override { inner_->warm(rows); }
  GemmWork run(Lane& lane, const Buffer& x, Buffer& y,
               std::span<const std::int64_t> rows) override {
    GemmSeen seen{.rows_per_expert = {rows.begin(), rows.end()}, .in = {}, .out = {}};
    std::int64_t total = 0;
    for (const std::int64_t own : rows) total += own;
    const std::int64_t element = bytes_of(row_dtype(shape_.dtype));
    seen.in = bytes_on_host(backend_, lane, x, total * shape_.k * element);
    const GemmWork work = inner_->run(lane, x, y, rows);
    seen.out = bytes_on_host(backend_, lane, y, total * shape_.n * element);
    seen_.gemms.push_back(std::move(seen));
    return work;
  }
  void flush_weights() override { inner_->flush_weights(); }
  std::int64_t weight_bytes() const override { return inner_->weight_bytes(); }

 private:
  std::unique_ptr<GroupedGemm> inner_;
  GemmShape shape_;
  Backend& backend_;
  Seen& seen_;
};

// The group of `ep_size` ranks that this rank is in; all ranks call it.
inline EpGroup group_of(int ep_size) {
  const Comm& world = mpi_world();
  return {world.split(world.rank() / ep_size, world.rank() % ep_size), world.rank() / ep_size,
          world.size() / ep_size};
}

// A transport with what it needs of the launch; closed by close().
class OpenTransport {
 public:
  OpenTransport(const std::string& name, const EpGroup& group) {
    const TransportEntry& entry = TransportCatalog::instance().at(name);
    if (entry.make_fabric != nullptr) fabric_ = entry.make_fabric(mpi_world(), &group);
    transport_ = entry.make(group, fabric_.get());
  }
  Transport& operator*() { return *transport_; }
  void close() {
    transport_->close();
    if (fabric_ != nullptr) fabric_->close();
  }

 private:
  std::unique_ptr<Fabric> fabric_;
  std::unique_ptr<Transport> transport_;
};

// Names of one backend's entries in a catalog.
template <typename Catalog>
std::vector<std::string> names_for(const std::string& backend) {
  std::vector<std::string> names;
  for (const std::string& name : Catalog::instance().names()) {
    if (Catalog::instance().at(name).backend == backend) names.push_back(name);
  }
  return names;
}

// Whether the point's transport, exchange unit and launch go together on the backend, and its
// grouped GEMM takes both matrices; the same on all ranks of a group.
inline bool can_run(const SweepPoint& point, Backend& backend, int ep_rank) {
  const RankWork work = plan_rank_work(point, ep_rank);
  if (exchange_refusal(work, backend.describe())) return false;
  const auto refuses = GroupedGemmCatalog::instance().at(point.grouped_gemm).refuses;
  return refuses == nullptr || (!refuses(gate_up_shape(work)) && !refuses(down_shape(work)));
}

}  // namespace epsweep
