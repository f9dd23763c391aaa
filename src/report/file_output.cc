#include "report/file_output.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/error.h"

namespace epsweep {
namespace {

[[noreturn]] void throw_failure(const std::string& path, const char* action) {
  throw RunError(fmt::format("{}: cannot be {}: {}", path, action, std::strerror(errno)));
}

// A rename is durable once the directory that holds the name is.
void sync_parent(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const char* const name = parent.empty() ? "." : parent.c_str();
  const FileHandle directory(::open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory) ::fsync(directory.get());  // some file systems refuse; the data itself is synced
}

void write_and_sync(const std::string& path, std::span<const std::string_view> parts) {
  const FileHandle file(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!file) throw_failure(path, "opened for writing");
  for (const std::string_view part : parts) write_all(file, part, path);
  sync_file(file, path);
}

}  // namespace

void FileTraits::destroy(int descriptor) noexcept {
  ::close(descriptor);
}

void write_all(const FileHandle& file, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_failure(path, "written");
    if (written == 0) throw RunError(fmt::format("{}: cannot be written: no progress", path));
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void sync_file(const FileHandle& file, const std::string& path) {
  // EINVAL: not a file that has a disk behind it (a pipe, a device).
  if (::fsync(file.get()) != 0 && errno != EINVAL) throw_failure(path, "synced to disk");
}

void write_file_atomically(const std::string& path, std::span<const std::string_view> parts) {
  const std::string temporary = path + ".tmp";
  try {
    write_and_sync(temporary, parts);
    if (std::rename(temporary.c_str(), path.c_str()) != 0) throw_failure(path, "replaced");
  } catch (const RunError&) {
    ::unlink(temporary.c_str());
    throw;
  }
  sync_parent(path);
}

void write_file_atomically(const std::string& path, std::string_view text) {
  const std::array<std::string_view, 1> parts = {text};
  write_file_atomically(path, parts);
}

}  // namespace epsweep
