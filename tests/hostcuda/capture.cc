#include "hostcuda/capture.h"

#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>
#include <vector>

#include <cuda_runtime_api.h>

namespace {

// How much of every stream's work comes before a place in the capture.
using Before = std::map<cudaStream_t, std::size_t>;

struct Node {
  enum class Kind { step, record, wait } kind = Kind::step;
  cudaStream_t stream = nullptr;
  hostcuda::Step step;   // of step: copied for every launch
  std::size_t mark = 0;  // of record and wait
};

}  // namespace

struct CUgraph_st {
  cudaStream_t origin = nullptr;
  std::vector<Node> nodes;
  std::size_t num_marks = 0;
};

namespace {

struct Capture {
  long long number = 0;
  bool spoiled = false;
  CUgraph_st graph;
  std::map<cudaStream_t, Before> before;  // of the captured streams' next work; own work included
  std::vector<Before> at_mark;
};

struct Mark {
  long long capture = 0;
  std::size_t mark = 0;
};

struct Captures {
  std::unique_ptr<Capture> current;
  long long count = 0;
  std::map<cudaEvent_t, Mark> marks;  // events that were last recorded in a capture
};

Captures& captures() {
  static Captures& instance = *new Captures;
  return instance;
}

Capture* capture_of(cudaStream_t stream) {
  Capture* capture = captures().current.get();
  return capture != nullptr && capture->before.contains(stream) ? capture : nullptr;
}

void add(Capture& capture, Node node) {
  ++capture.before[node.stream][node.stream];
  capture.graph.nodes.push_back(std::move(node));
}

void merge(const Before& from, Before& into) {
  for (const auto& [stream, count] : from) into[stream] = std::max(into[stream], count);
}

cudaError_t spoil(Capture& capture, cudaError_t status) {
  capture.spoiled = true;
  return status;
}

// Whether everything captured comes before the end of the stream that began.
bool is_joined(const Capture& capture) {
  const Before& end = capture.before.at(capture.graph.origin);
  for (const auto& [stream, before] : capture.before) {
    const auto own = before.find(stream), known = end.find(stream);
    if (own != before.end() && (known == end.end() || known->second < own->second)) return false;
  }
  return true;
}

}  // namespace

// What one launch does is told apart from the next one's.
struct Launched {
  std::vector<char> passed;
  bool done = false;
};

struct CUgraphExec_st {
  CUgraph_st graph;
  std::map<cudaStream_t, cudaStream_t> side_streams;  // for those that the origin forked into
  std::shared_ptr<Launched> last;
};

namespace hostcuda {

bool is_capturing(cudaStream_t stream) {
  return capture_of(stream) != nullptr;
}

bool refuse_in_capture() {
  if (captures().current == nullptr) return false;
  captures().current->spoiled = true;
  return true;
}

bool capture_step(cudaStream_t stream, const Step& step) {
  Capture* capture = capture_of(stream);
  if (capture == nullptr) return false;
  add(*capture, {.kind = Node::Kind::step, .stream = stream, .step = step, .mark = 0});
  return true;
}

EventResult capture_record(cudaEvent_t event, cudaStream_t stream) {
  Capture* capture = capture_of(stream);
  if (capture == nullptr) {
    captures().marks.erase(event);
    return {};
  }
  const std::size_t mark = capture->graph.num_marks++;
  add(*capture, {.kind = Node::Kind::record, .stream = stream, .step = {}, .mark = mark});
  capture->at_mark.push_back(capture->before[stream]);
  captures().marks[event] = {.capture = capture->number, .mark = mark};
  return {.taken = true, .status = cudaSuccess};
}

EventResult capture_wait(cudaStream_t stream, cudaEvent_t event) {
  Capture* capture = captures().current.get();
  const auto found = captures().marks.find(event);
  const bool of_current = capture != nullptr && found != captures().marks.end() &&
                          found->second.capture == capture->number;
  if (!of_current) {
    // Work of a capture that ended can be waited for by launching it only.
    if (found != captures().marks.end()) return {true, cudaErrorCapturedEvent};
    if (capture_of(stream) == nullptr) return {};
    return {true, spoil(*capture, cudaErrorStreamCaptureIsolation)};
  }
  // A stream that waits for captured work is captured from then on.
  const std::size_t mark = found->second.mark;
  merge(capture->at_mark[mark], capture->before[stream]);
  add(*capture, {.kind = Node::Kind::wait, .stream = stream, .step = {}, .mark = mark});
  return {.taken = true, .status = cudaSuccess};
}

}  // namespace hostcuda

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (stream == nullptr) return cudaErrorStreamCaptureUnsupported;
  if (captures().current != nullptr) return cudaErrorIllegalState;
  captures().current = std::make_unique<Capture>();
  captures().current->number = ++captures().count;
  captures().current->graph.origin = stream;
  captures().current->before[stream];
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  Capture* capture = capture_of(stream);
  if (capture == nullptr) return cudaErrorIllegalState;
  if (capture->graph.origin != stream) {
    return spoil(*capture, cudaErrorStreamCaptureUnmatched);
  }
  const std::unique_ptr<Capture> ended = std::move(captures().current);
  if (ended->spoiled) return cudaErrorStreamCaptureInvalidated;
  if (!is_joined(*ended)) return cudaErrorStreamCaptureUnjoined;
  *graph = new CUgraph_st(std::move(ended->graph));
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  if (hostcuda::refuse_in_capture()) return cudaErrorStreamCaptureUnsupported;
  *exec = new CUgraphExec_st{*graph, {}, nullptr};
  for (const Node& node : graph->nodes) {
    cudaStream_t& side = (*exec)->side_streams[node.stream];
    if (node.stream != graph->origin && side == nullptr) {
      cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
    }
  }
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  for (const auto& [captured, side] : exec->side_streams) {
    if (side != nullptr) cudaStreamDestroy(side);
  }
  delete exec;
  return cudaSuccess;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  if (exec == nullptr || hostcuda::is_capturing(stream)) return cudaErrorInvalidValue;
  hostcuda::enqueue(stream, [] { return hostcuda::Progress::done; });
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  using hostcuda::Progress;
  // A graph inside a graph: not what src/cuda does.
  if (hostcuda::is_capturing(stream)) return cudaErrorStreamCaptureUnsupported;
  auto launched = std::make_shared<Launched>();
  launched->passed.resize(exec->graph.num_marks);
  hostcuda::enqueue(stream, [before = exec->last] {
    return before == nullptr || before->done ? Progress::done : Progress::waiting;
  });
  for (const Node& node : exec->graph.nodes) {
    const cudaStream_t side = exec->side_streams.at(node.stream);
    const cudaStream_t target = side == nullptr ? stream : side;
    switch (node.kind) {
      case Node::Kind::step:
        hostcuda::enqueue(target, node.step);
        break;
      case Node::Kind::record:
        hostcuda::enqueue(target, [launched, mark = node.mark] {
          launched->passed[mark] = 1;
          return Progress::done;
        });
        break;
      case Node::Kind::wait:
        hostcuda::enqueue(target, [launched, mark = node.mark] {
          return launched->passed[mark] != 0 ? Progress::done : Progress::waiting;
        });
        break;
    }
  }
  hostcuda::enqueue(stream, [launched] {
    launched->done = true;
    return Progress::done;
  });
  exec->last = std::move(launched);
  return cudaSuccess;
}

}  // extern "C"
