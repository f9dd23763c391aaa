#include "report/progress.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/host_probe.h"

namespace epsweep {
namespace {

constexpr int kBarCells = 20;
constexpr int kDefaultColumns = 80;

int terminal_columns(std::FILE* stream) {
  winsize size = {};
  const bool known = ::ioctl(::fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kDefaultColumns;
}

std::string bar(const ProgressState& state) {
  const int points = std::max(state.num_points, 1);
  const int filled = std::clamp(kBarCells * state.num_finished / points, 0, kBarCells);
  std::string text(static_cast<std::size_t>(filled), '=');
  if (filled < kBarCells) text += '>';
  text.resize(kBarCells, ' ');
  return text;
}

std::string remaining_text(const ProgressState& state) {
  const std::optional<double> left_s = remaining_s(state);
  return left_s.has_value() ? duration_text(*left_s) + " left" : "";
}

}  // namespace

std::optional<double> remaining_s(const ProgressState& state) {
  if (state.num_finished <= 0) return std::nullopt;
  return state.elapsed_s / state.num_finished * (state.num_points - state.num_finished);
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<long long>(std::llround(std::max(seconds, 0.0)));
  if (whole < 60) return fmt::format("{}s", whole);
  if (whole < 3600) return fmt::format("{}m{:02d}s", whole / 60, whole % 60);
  return fmt::format("{}h{:02d}m", whole / 3600, whole % 3600 / 60);
}

std::string progress_bar_line(const ProgressState& state, int columns) {
  const std::string head =
      fmt::format("[{}] {}/{}  ", bar(state), state.num_finished, state.num_points);
  const std::string left = remaining_text(state);
  const std::string tail = left.empty() ? "" : "  " + left;
  const auto width = static_cast<std::size_t>(std::max(columns, 1));
  // The label gives way first: the count and the time left are what the line is for.
  const std::size_t taken = head.size() + tail.size();
  const std::string label = state.point_label.substr(0, width > taken ? width - taken : 0);
  return (head + label + tail).substr(0, width);
}

std::string progress_plain_line(const ProgressState& state, const std::string& outcome) {
  const std::string left = remaining_text(state);
  return fmt::format("{}/{} {} {}{}", state.num_finished, state.num_points, outcome,
                     state.point_label, left.empty() ? "" : " (" + left + ")");
}

Progress::Progress(int num_points, std::FILE* stream)
    : stream_(stream),
      style_(::isatty(::fileno(stream)) != 0 ? Style::bar : Style::lines),
      start_s_(monotonic_s()) {
  state_.num_points = num_points;
}

void Progress::begin_point(const std::string& label) {
  state_.point_label = label;
  redraw();
}

void Progress::end_point(const std::string& outcome) {
  ++state_.num_finished;
  state_.elapsed_s = monotonic_s() - start_s_;
  if (style_ == Style::lines) {
    fmt::print(stream_, "{}\n", progress_plain_line(state_, outcome));
    std::fflush(stream_);
    return;
  }
  redraw();
  if (state_.num_finished == state_.num_points) fmt::print(stream_, "\n");
  std::fflush(stream_);
}

void Progress::clear() {
  if (style_ == Style::bar) fmt::print(stream_, "\r\x1b[K");
}

void Progress::redraw() {
  if (style_ != Style::bar) return;
  // One column less than the terminal: a full line would wrap and could not be redrawn.
  fmt::print(stream_, "\r\x1b[K{}", progress_bar_line(state_, terminal_columns(stream_) - 1));
  std::fflush(stream_);
}

}  // namespace epsweep
