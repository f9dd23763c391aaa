// Small text functions used in messages and files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace epsweep {

// The candidate with the smallest edit distance (insert, delete, replace, swap of neighbours);
// the first one on a tie; empty if there are no candidates or all are further away than two
// thirds of the longer word.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

// "a, b, c"
std::string join(const std::vector<std::string>& words, std::string_view separator = ", ");
std::string join(const std::vector<int>& numbers, std::string_view separator = ", ");

// 16 lower-case hexadecimal digits.
std::string hex64(std::uint64_t value);

// 16 hex digits over the text.
std::string text_checksum(std::string_view text);

// Whole file as text. Throws ConfigError naming the path and the reason.
std::string read_text_file(const std::string& path);

// Names of the files in a folder, folders left out, sorted. Throws ConfigError.
std::vector<std::string> file_names(const std::string& folder);

// 16 hex digits over a file's content; of a folder over the names and contents of its files, in
// name order. Throws ConfigError.
std::string path_checksum(const std::string& path);

}  // namespace epsweep
