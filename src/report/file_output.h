// Files that are either written whole or reported: short writes and full disks never pass silently.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/unique_handle.h"

namespace epsweep {

struct FileTraits {
  using value_type = int;
  static int null() { return -1; }
  static void destroy(int descriptor) noexcept;
};
using FileHandle = UniqueHandle<FileTraits>;

// Writes all bytes, resuming after short writes. Throws RunError naming `path` and the reason.
void write_all(const FileHandle& file, std::string_view bytes, const std::string& path);

// To the disk, not only to the page cache. Throws RunError naming `path`.
void sync_file(const FileHandle& file, const std::string& path);

// The parts one after another, under a temporary name that then replaces `path`: readers see the
// old file or the new one, never a half. Throws RunError naming `path`.
void write_file_atomically(const std::string& path, std::span<const std::string_view> parts);
void write_file_atomically(const std::string& path, std::string_view text);

}  // namespace epsweep
