// The NCCL calls that src/cuda makes, over MPI. Sends and receives of a group, and the messages of
// an all-to-all, become one step of their stream; sizes and kinds of both sides are compared, as
// NCCL would hang or corrupt where they differ.
#include <algorithm>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <mpi.h>
#include <nccl.h>

#include "hostcuda/capture.h"
#include "hostcuda/device_memory.h"
#include "hostcuda/left_out.h"
#include "hostcuda/stream_queue.h"

struct ncclComm {
  MPI_Comm comm = MPI_COMM_NULL;
  // Non-blocking calls are done when ncclCommGetAsyncError() says so, and not before.
  bool ready = false;
};

namespace {

constexpr int kSizeTag = 31, kDataTag = 32, kCallBits = 2;

// What both sides of a message must agree on besides its size.
enum class Call : unsigned long long { send_recv, all_to_all };

struct Message {
  Call call = Call::send_recv;
  bool is_send = false;
  ncclComm_t comm = nullptr;
  void* data = nullptr;
  std::size_t bytes = 0;
  int peer = 0;
  cudaStream_t stream = nullptr;
};

int depth = 0;
std::vector<Message> pending;

// A group on its way: sizes first, then the data.
struct Exchange {
  std::vector<Message> messages;
  std::vector<unsigned long long> own_size, peer_size;
  std::vector<MPI_Request> requests;
  bool is_captured = false;  // all sides of an exchange are, or none
  enum class Stage { unposted, sizes, data } stage = Stage::unposted;
};

void post(Exchange& exchange, int tag) {
  exchange.requests.assign(exchange.messages.size() * (tag == kSizeTag ? 2 : 1), MPI_REQUEST_NULL);
  for (std::size_t i = 0; i < exchange.messages.size(); ++i) {
    const Message& m = exchange.messages[i];
    if (tag == kSizeTag) {
      exchange.own_size[i] = m.bytes << kCallBits | static_cast<unsigned long long>(m.call) << 1 |
                             (exchange.is_captured ? 1U : 0U);
      // A send's size travels to the receiver and a receive's to the sender.
      const int out = kSizeTag + (m.is_send ? 10 : 20), in = kSizeTag + (m.is_send ? 20 : 10);
      MPI_Isend(&exchange.own_size[i], 1, MPI_UNSIGNED_LONG_LONG, m.peer, out, m.comm->comm,
                &exchange.requests[2 * i]);
      MPI_Irecv(&exchange.peer_size[i], 1, MPI_UNSIGNED_LONG_LONG, m.peer, in, m.comm->comm,
                &exchange.requests[2 * i + 1]);
    } else if (m.is_send) {
      MPI_Isend(m.data, static_cast<int>(m.bytes), MPI_BYTE, m.peer, tag, m.comm->comm,
                &exchange.requests[i]);
    } else {
      MPI_Irecv(m.data, static_cast<int>(m.bytes), MPI_BYTE, m.peer, tag, m.comm->comm,
                &exchange.requests[i]);
    }
  }
}

bool arrived(Exchange& exchange) {
  int done = 0;
  MPI_Testall(static_cast<int>(exchange.requests.size()), exchange.requests.data(), &done,
              MPI_STATUSES_IGNORE);
  return done != 0;
}

void compare_sizes(const Exchange& exchange) {
  for (std::size_t i = 0; i < exchange.messages.size(); ++i) {
    if (exchange.own_size[i] == exchange.peer_size[i]) continue;
    const unsigned long long own = exchange.own_size[i], peer = exchange.peer_size[i];
    const std::string where = " at peer " + std::to_string(exchange.messages[i].peer);
    if (own >> kCallBits == peer >> kCallBits) {
      throw std::logic_error("NCCL calls differ: captured, or ncclAlltoAll, here or" + where +
                             ", but not at both");
    }
    throw std::logic_error("NCCL sizes differ: " + std::to_string(own >> kCallBits) +
                           " bytes here, " + std::to_string(peer >> kCallBits) + where);
  }
}

hostcuda::Progress advance(Exchange& exchange) {
  if (exchange.stage == Exchange::Stage::unposted) {
    post(exchange, kSizeTag);
    exchange.stage = Exchange::Stage::sizes;
  }
  if (!arrived(exchange)) return hostcuda::Progress::waiting;
  if (exchange.stage == Exchange::Stage::data) return hostcuda::Progress::done;
  compare_sizes(exchange);
  post(exchange, kDataTag);
  exchange.stage = Exchange::Stage::data;
  return hostcuda::Progress::waiting;
}

std::size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclBfloat16:
    case ncclFloat16:
      return 2;
    case ncclInt32:
    case ncclFloat32:
      return 4;
    default:
      return 8;
  }
}

void expect_ready(ncclComm_t comm) {
  if (!comm->ready) throw std::logic_error("an NCCL communicator used while a call is in progress");
}

ncclResult_t add(Message message) {
  expect_ready(message.comm);
  if (depth == 0) throw std::logic_error("a lone ncclSend or ncclRecv waits for its peer for ever");
  pending.push_back(message);
  return ncclSuccess;
}

}  // namespace

extern "C" {

const char* ncclGetErrorString(ncclResult_t) {
  return "error of the host double";
}
const char* ncclGetLastError(ncclComm_t) {
  return "";
}
ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::memset(id, 7, sizeof(*id));
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t*) {
  int world = 0, own = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &world);
  MPI_Comm_rank(MPI_COMM_WORLD, &own);
  if (ranks != world || rank != own || id.internal[5] != 7) return ncclInvalidArgument;
  *comm = new ncclComm;
  MPI_Comm_dup(MPI_COMM_WORLD, &(*comm)->comm);
  return ncclInProgress;
}
ncclResult_t ncclCommSplit(ncclComm_t parent, int color, int key, ncclComm_t* part, ncclConfig_t*) {
  expect_ready(parent);
  parent->ready = false;
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_split(parent->comm, color == NCCL_SPLIT_NOCOLOR ? MPI_UNDEFINED : color, key, &made);
  *part = made == MPI_COMM_NULL ? nullptr : new ncclComm{made};
  return ncclInProgress;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  *state = ncclSuccess;
  if (hostcuda::is_left_out(hostcuda::Wait::nccl)) return ncclSuccess;
  comm->ready = true;
  hostcuda::launch_late();
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  expect_ready(comm);
  comm->ready = false;
  hostcuda::drain_all();
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  expect_ready(comm);
  MPI_Comm_free(&comm->comm);
  delete comm;
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t) {
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (depth == 0) return ncclInvalidUsage;
  if (--depth > 0 || pending.empty()) return ncclSuccess;
  Exchange exchange;
  exchange.messages.swap(pending);
  exchange.own_size.resize(exchange.messages.size());
  exchange.peer_size.resize(exchange.messages.size());
  const cudaStream_t stream = exchange.messages.front().stream;
  exchange.is_captured = hostcuda::is_capturing(stream);
  for (const Message& message : exchange.messages) {
    if (message.stream != stream) throw std::logic_error("one NCCL group on several streams");
    message.comm->ready = false;
  }
  // By value: every replay of a captured group is an exchange of its own.
  hostcuda::enqueue_late(stream,
                         [exchange = std::move(exchange)]() mutable { return advance(exchange); });
  return ncclInProgress;
}

ncclResult_t ncclSend(const void* data, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return add(
      {Call::send_recv, true, comm, const_cast<void*>(data), count * size_of(type), peer, stream});
}
ncclResult_t ncclRecv(void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add({Call::send_recv, false, comm, data, count * size_of(type), peer, stream});
}

// Decomposes into messages between all pairs, own ones included; equal counts on all ranks follow
// from equal sizes of every pair. What is empty everywhere is discarded, as NCCL does.
ncclResult_t ncclAlltoAll(const void* send, void* recv, std::size_t count, ncclDataType_t type,
                          ncclComm_t comm, cudaStream_t stream) {
  int ranks = 0;
  MPI_Comm_size(comm->comm, &ranks);
  const std::size_t bytes = count * size_of(type);
  const auto all = static_cast<std::size_t>(ranks) * bytes;
  if (!hostcuda::on_device(send, all) || !hostcuda::on_device(recv, all) ||
      (send == recv && bytes > 0)) {
    return ncclInvalidArgument;
  }
  ncclGroupStart();
  for (int rank = 0; rank < ranks; ++rank) {
    const std::size_t begin = static_cast<std::size_t>(rank) * bytes;
    auto* from = const_cast<char*>(static_cast<const char*>(send)) + begin;
    add({Call::all_to_all, true, comm, from, bytes, rank, stream});
    add({Call::all_to_all, false, comm, static_cast<char*>(recv) + begin, bytes, rank, stream});
  }
  return ncclGroupEnd();
}

}  // extern "C"
