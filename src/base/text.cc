#include "base/text.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/random.h"

namespace epsweep {
namespace {

// Optimal string alignment distance (Damerau-Levenshtein without repeated edits).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t best_distance = SIZE_MAX;
  for (const std::string& candidate : candidates) {
    const auto [shorter, longer] = std::minmax({word.size(), candidate.size()});
    if ((longer - shorter) * 3 > longer * 2) continue;  // too far whatever the letters
    const std::size_t distance = edit_distance(word, candidate);
    if (distance * 3 <= std::max(word.size(), candidate.size()) * 2 && distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string join(const std::vector<std::string>& words, std::string_view separator) {
  return fmt::format("{}", fmt::join(words, separator));
}

std::string join(const std::vector<int>& numbers, std::string_view separator) {
  return fmt::format("{}", fmt::join(numbers, separator));
}

std::string hex64(std::uint64_t value) {
  return fmt::format("{:016x}", value);
}

std::string text_checksum(std::string_view text) {
  Fingerprint fingerprint;
  for (const char c : text) fingerprint.add(static_cast<unsigned char>(c));
  return hex64(fingerprint.value());
}

std::string read_text_file(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw ConfigError(path + ": is a directory, expected a file");
  }
  if (std::filesystem::is_character_file(path, ignored)) {  // /dev/zero never ends
    throw ConfigError(path + ": is a device, expected a file");
  }
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  // operator<< fails on an empty file, so the stream states are looked at apart.
  if (!stream ||
      (stream.peek() != std::ifstream::traits_type::eof() && !(text << stream.rdbuf()))) {
    throw ConfigError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  }
  return text.str();
}

std::string path_checksum(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return text_checksum(read_text_file(path));
  Fingerprint folder;
  for (const std::string& name : file_names(path)) {
    const std::string file = fmt::format("{}/{}", path, name);
    for (const std::string& part : {text_checksum(name), text_checksum(read_text_file(file))}) {
      for (const char c : part) folder.add(static_cast<unsigned char>(c));
    }
  }
  return hex64(folder.value());
}

std::vector<std::string> file_names(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->is_regular_file(error)) names.push_back(entry->path().filename().string());
  }
  if (error) throw ConfigError(fmt::format("{}: cannot be read: {}", folder, error.message()));
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace epsweep
