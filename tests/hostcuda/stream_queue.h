// Streams as queues whose interleaving is chosen by a seed. Only stream order and event waits hold;
// what a missing wait would allow on a device may happen here. A test double.
#pragma once

#include <functional>

#include <driver_types.h>

namespace hostcuda {

enum class Progress { done, waiting };
// What a queue does next: asked again while it is waiting.
using Step = std::function<Progress()>;

void enqueue(cudaStream_t stream, Step step);
// Runs steps of any stream until the stream is empty. Throws std::logic_error where nothing can go
// on for ever. A step that throws is dropped.
void drain(cudaStream_t stream);
void drain_all();
// Of all later choices between streams, and of threads inside blocks.
void set_seed(unsigned long long seed);

// Steps that were run: the device's clock, one microsecond a step.
double clock_s();

}  // namespace hostcuda
