#include "cuda/kernels/router.h"
#include "cuda/kernels/router_logits.h"
#include "cuda/launch.h"

namespace epsweep::cuda {
namespace {

constexpr int kThreads = 128;

// The largest value seen and its index; ties go to the lower index, NaN never wins.
struct Best {
  float value;
  int index;
};

struct RouterMemory {
  float logit[kMaxRouterExperts];  // scores from score_experts() on
  float rank_by[kMaxRouterExperts];
  float group[kMaxRouterGroups];
  Best best[kThreads];
  int chosen[kMaxRouterTopK];
  float weight[kMaxRouterTopK];
};

constexpr int kNone = 0x7fffffff;

__device__ bool beats(const Best& a, const Best& b) {
  return a.value > b.value || (a.value == b.value && a.index < b.index);
}

// The best of all threads' candidates, known to all threads.
__device__ Best reduce_best(RouterMemory& memory, Best mine) {
  memory.best[threadIdx.x] = mine;
  __syncthreads();
  for (int step = kThreads / 2; step > 0; step /= 2) {
    if (static_cast<int>(threadIdx.x) < step &&
        beats(memory.best[threadIdx.x + step], memory.best[threadIdx.x])) {
      memory.best[threadIdx.x] = memory.best[threadIdx.x + step];
    }
    __syncthreads();
  }
  const Best best = memory.best[0];
  __syncthreads();
  return best;
}

// Over values[0..count-1], skipping those already taken.
__device__ Best best_of(RouterMemory& memory, const float* values, int count, const int* taken,
                        int num_taken) {
  Best mine{-INFINITY, kNone};
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) {
    bool free = true;
    for (int j = 0; j < num_taken; ++j) free = free && taken[j] != i;
    // A value of minus infinity may be chosen where nothing better is left.
    const Best here{values[i], i};
    if (free && beats(here, mine)) mine = here;
  }
  return reduce_best(memory, mine);
}

__device__ float block_sum(RouterMemory& memory, const float* values, int count) {
  float sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) sum += values[i];
  memory.best[threadIdx.x].value = sum;
  __syncthreads();
  for (int step = kThreads / 2; step > 0; step /= 2) {
    if (static_cast<int>(threadIdx.x) < step) {
      memory.best[threadIdx.x].value += memory.best[threadIdx.x + step].value;
    }
    __syncthreads();
  }
  sum = memory.best[0].value;
  __syncthreads();
  return sum;
}

__device__ void load_logits(const RouterArguments& arguments, int parts, std::int64_t token,
                            RouterMemory& memory) {
  const std::int64_t part_size = arguments.num_tokens * arguments.num_experts;
  for (int e = static_cast<int>(threadIdx.x); e < arguments.num_experts; e += kThreads) {
    const float* from = arguments.scratch + token * arguments.num_experts + e;
    float sum = 0;
    for (int part = 0; part < parts; ++part) sum += from[part * part_size];
    memory.logit[e] = sum;
  }
  __syncthreads();
}

__device__ float activated(RouterScore score, float logit) {
  if (score == RouterScore::sigmoid) return 1.0F / (1.0F + expf(-logit));
  // softplus without overflow: log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|)).
  return sqrtf(fmaxf(logit, 0.0F) + log1pf(expf(-fabsf(logit))));
}

// In place; topk_softmax keeps the logits.
__device__ void score_experts(const RouterArguments& arguments, RouterMemory& memory) {
  const int count = arguments.num_experts;
  if (arguments.score == RouterScore::topk_softmax) return;
  if (arguments.score == RouterScore::softmax) {
    const float largest = best_of(memory, memory.logit, count, nullptr, 0).value;
    for (int e = static_cast<int>(threadIdx.x); e < count; e += kThreads) {
      memory.logit[e] = expf(memory.logit[e] - largest);
    }
    __syncthreads();
    const float factor = 1.0F / block_sum(memory, memory.logit, count);
    for (int e = static_cast<int>(threadIdx.x); e < count; e += kThreads) memory.logit[e] *= factor;
  } else {
    for (int e = static_cast<int>(threadIdx.x); e < count; e += kThreads) {
      memory.logit[e] = activated(arguments.score, memory.logit[e]);
    }
  }
  __syncthreads();
}

__device__ float score_of_group(const float* values, int size, RouterGroupScore kind) {
  float first = -INFINITY, second = -INFINITY;
  for (int i = 0; i < size; ++i) {
    if (values[i] > first) {
      second = first;
      first = values[i];
    } else if (values[i] > second) {
      second = values[i];
    }
  }
  return kind == RouterGroupScore::max || size == 1 ? first : first + second;
}

// Experts of groups that are not kept rank behind everything.
__device__ void limit_groups(const RouterArguments& arguments, RouterMemory& memory) {
  if (arguments.topk_groups >= arguments.num_groups) return;
  const int size = arguments.num_experts / arguments.num_groups;
  for (int g = static_cast<int>(threadIdx.x); g < arguments.num_groups; g += kThreads) {
    memory.group[g] = score_of_group(memory.rank_by + g * size, size, arguments.group_score);
  }
  __syncthreads();
  for (int kept = 0; kept < arguments.topk_groups; ++kept) {
    const Best best = best_of(memory, memory.group, arguments.num_groups, memory.chosen, kept);
    if (threadIdx.x == 0) memory.chosen[kept] = best.index;
    __syncthreads();
  }
  for (int e = static_cast<int>(threadIdx.x); e < arguments.num_experts; e += kThreads) {
    bool is_kept = false;
    for (int i = 0; i < arguments.topk_groups; ++i)
      is_kept = is_kept || memory.chosen[i] == e / size;
    if (!is_kept) memory.rank_by[e] = NAN;
  }
  __syncthreads();
}

__device__ void choose(const RouterArguments& arguments, std::int64_t token, RouterMemory& memory) {
  for (int e = static_cast<int>(threadIdx.x); e < arguments.num_experts; e += kThreads) {
    const float bias = arguments.selection_bias == nullptr ? 0.0F : arguments.selection_bias[e];
    memory.rank_by[e] = memory.logit[e] + bias;
  }
  __syncthreads();
  limit_groups(arguments, memory);
  for (int j = 0; j < arguments.top_k; ++j) {
    const Best best = best_of(memory, memory.rank_by, arguments.num_experts, memory.chosen, j);
    if (threadIdx.x == 0) {
      memory.chosen[j] = best.index;
      arguments.own_choice[token * arguments.top_k + j] = best.index;
    }
    __syncthreads();
  }
}

// By one thread: top_k is small and the order of the sum must be that of the CPU.
__device__ void weigh(const RouterArguments& arguments, std::int64_t token, RouterMemory& memory) {
  if (threadIdx.x != 0) return;
  const std::int64_t at = token * arguments.top_k;
  float largest = -INFINITY, sum = 0;
  for (int j = 0; j < arguments.top_k; ++j) {
    memory.weight[j] = memory.logit[arguments.prescribed[at + j]];
    largest = fmaxf(largest, memory.weight[j]);
  }
  if (arguments.score == RouterScore::topk_softmax) {
    for (int j = 0; j < arguments.top_k; ++j) {
      memory.weight[j] = expf(memory.weight[j] - largest);
      sum += memory.weight[j];
    }
    for (int j = 0; j < arguments.top_k; ++j) memory.weight[j] *= 1.0F / sum;
  }
  float factor = arguments.scale;
  if (arguments.renormalize) {
    sum = 0;
    for (int j = 0; j < arguments.top_k; ++j) sum += memory.weight[j];
    // Chosen scores that all underflow get weight 0 and not 0/0.
    factor /= fmaxf(sum, 1e-20F);
  }
  for (int j = 0; j < arguments.top_k; ++j) {
    arguments.weights[at + j] = memory.weight[j] * factor;
  }
}

__global__ void select_kernel(RouterArguments arguments, int parts) {
  RouterMemory& memory = shared_memory<RouterMemory>();
  for (std::int64_t token = blockIdx.x; token < arguments.num_tokens; token += gridDim.x) {
    load_logits(arguments, parts, token, memory);
    if (arguments.select_by_logit) choose(arguments, token, memory);
    score_experts(arguments, memory);
    if (!arguments.select_by_logit) choose(arguments, token, memory);
    weigh(arguments, token, memory);
    __syncthreads();
  }
}

}  // namespace

std::int64_t router_scratch_entries(std::int64_t num_tokens, std::int64_t hidden_dim,
                                    int num_experts) {
  return num_tokens * num_experts * logit_parts(num_tokens, hidden_dim, num_experts);
}

void router(cudaStream_t stream, const RouterArguments& arguments) {
  if (arguments.num_tokens == 0) return;
  router_logits(stream, arguments);
  const auto blocks =
      static_cast<unsigned>(arguments.num_tokens < 65'535 ? arguments.num_tokens : 65'535);
  launch(stream, Grid{dim3(blocks), dim3(kThreads)}, select_kernel, arguments,
         logit_parts(arguments.num_tokens, arguments.hidden_dim, arguments.num_experts));
}

}  // namespace epsweep::cuda
