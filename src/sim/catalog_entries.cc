// What `--backend sim` and experiments without names of their own use. None of it makes anything:
// simulated ranks have no device.
#include "base/error.h"
#include "device/backend.h"
#include "device/grouped_gemm.h"
#include "device/transport.h"
#include "sim/names.h"

namespace epsweep {
namespace {

std::unique_ptr<Backend> refuse_backend(const BackendOptions&) {
  throw RunError("simulated ranks have no device");
}
std::unique_ptr<Transport> refuse_transport(const EpGroup&, Fabric*) {
  throw RunError("simulated ranks move nothing");
}
std::unique_ptr<GroupedGemm> refuse_gemm(const GemmShape&, int) {
  throw RunError("simulated ranks compute nothing");
}

[[maybe_unused]] const bool backend_registered = BackendCatalog::instance().add(
    {.name = kSimBackend,
     .summary = "virtual clock: all ranks in one process, stages and links cost what the "
                "experiment's `sim` declares; nothing is measured",
     .default_transport = kDeclared,
     .default_grouped_gemm = kDeclared,
     .make = refuse_backend});

[[maybe_unused]] const bool transport_registered =
    TransportCatalog::instance().add({.name = kDeclared,
                                      .backend = kSimBackend,
                                      .summary = "costs what `sim` declares of links",
                                      .make = refuse_transport});

[[maybe_unused]] const bool gemm_registered = GroupedGemmCatalog::instance().add(
    {.name = kDeclared,
     .backend = kSimBackend,
     .summary = "costs what `sim` declares of operations and weight bytes",
     .refuses = [](const GemmShape&) { return std::optional<std::string>(); },
     .make = refuse_gemm});

}  // namespace
}  // namespace epsweep
