// Streams as queues whose interleaving is chosen by a seed. Only stream order and event waits hold;
// what a missing wait would allow on a device may happen here. A test double.
#pragma once

#include <cstddef>
#include <functional>

#include <driver_types.h>

namespace hostcuda {

enum class Progress { done, waiting };
// What a queue does next: asked again while it is waiting.
using Step = std::function<Progress()>;

void enqueue(cudaStream_t stream, Step step);
// What a library has taken but not enqueued yet: launch_late() does, or the next drain, behind
// whatever the stream was given meanwhile.
void enqueue_late(cudaStream_t stream, Step step);
void launch_late();
// Runs steps of any stream until the stream is empty. Throws std::logic_error where nothing can go
// on for ever. A step that throws is dropped.
void drain(cudaStream_t stream);
void drain_all();
// The handle may be used for another stream; what is queued runs some time.
void close(cudaStream_t stream);
// Of all streams.
std::size_t num_queued();

// Of all later choices between streams, and of threads inside blocks. By the seed, a device is slow
// (nothing runs before somebody waits) or quick (most work runs when it is enqueued), and streams
// run far ahead of each other. HOSTCUDA_SEED is the first one.
void set_seed(unsigned long long seed);

// How long a drain waits without any progress before it throws; for longer than an exchange between
// ranks of one machine takes, 60 s at first.
void set_patience(double seconds);

// Steps that were run: the device's clock, one microsecond a step.
double clock_s();

}  // namespace hostcuda
