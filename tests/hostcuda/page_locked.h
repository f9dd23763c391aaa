// How often page-locked memory was asked for: timed iterations must not. A test double.
#pragma once

namespace hostcuda {

long long page_locked_allocations();

}  // namespace hostcuda
