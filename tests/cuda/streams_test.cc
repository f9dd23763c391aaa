// A stream that leaves something out would be called fast.
#include "cuda/kernels/streams.h"

#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "cuda/cuda_lane.h"
#include "cuda/cuda_probes.h"
#include "device_array.h"

namespace epsweep::cuda {
namespace {

std::vector<std::uint32_t> random_words(std::int64_t count) {
  const RandomStream random(7, Stream::test);
  std::vector<std::uint32_t> words(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = static_cast<std::uint32_t>(random.bits(i));
  }
  return words;
}

std::uint32_t mixed(const std::vector<std::uint32_t>& words) {
  return std::accumulate(words.begin(), words.end(), 0U, std::bit_xor<>());
}

TEST(Streams, ReadingReachesEveryWord) {
  // Part of a thread's loads, one block, several blocks with an uneven end: in 16-byte pieces.
  for (const std::int64_t pieces : {1, 255, 1024, 5000, 40'001}) {
    const std::vector<std::uint32_t> host = random_words(4 * pieces);
    DeviceArray<std::uint32_t> from(host);
    DeviceArray<std::uint32_t> words(std::vector<std::uint32_t>(kReadStreamWords, 0));
    TestStream stream;
    read_stream(stream, from.data(), 16 * pieces, words.data());
    stream.synchronize();
    EXPECT_EQ(mixed(words.host()), mixed(host)) << pieces;
  }
}

TEST(Streams, ProbesCopyAPartAndReadTheCopy) {
  const std::vector<std::uint32_t> host = random_words(1024);
  Buffer buffer = make_device_buffer(2 * 4096);
  EPS_CUDA(cudaMemcpy(buffer.data(), host.data(), 4096, cudaMemcpyHostToDevice));
  CudaProbes probes(1 << 20);
  CudaLane lane;
  probes.copy(lane, buffer, {0, 4096}, 4096);
  probes.nothing(lane);
  probes.read(lane, buffer, {4096, 4096});
  lane.synchronize();
  std::vector<std::uint32_t> copied(1024), read(kReadStreamWords);
  EPS_CUDA(cudaMemcpy(copied.data(), static_cast<const char*>(buffer.data()) + 4096, 4096,
                      cudaMemcpyDeviceToHost));
  EPS_CUDA(cudaMemcpy(read.data(), probes.words().data(), read.size() * 4, cudaMemcpyDeviceToHost));
  EXPECT_EQ(copied, host);
  EXPECT_EQ(mixed(read), mixed(host));
  EXPECT_EQ(probes.stream_bytes(), std::int64_t{1} << 30);
}

}  // namespace
}  // namespace epsweep::cuda
