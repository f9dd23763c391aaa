// How far a run is, on stderr: a redrawn line on a terminal, plain lines elsewhere.
#pragma once

#include <cstdio>
#include <optional>
#include <string>

namespace epsweep {

struct ProgressState {
  int num_finished = 0;
  int num_points = 0;
  double elapsed_s = 0;     // since the first point began
  std::string point_label;  // of the point that runs, or that just finished
};

// Mean time of the finished points times the points left; absent before the first one.
std::optional<double> remaining_s(const ProgressState& state);

// "[=====>    ] 5/10  EP8 fixed_global 256 uniform  2m05s left", cut to `columns`.
std::string progress_bar_line(const ProgressState& state, int columns);
// "5/10 measured EP8 fixed_global 256 uniform (2m05s left)"
std::string progress_plain_line(const ProgressState& state, const std::string& outcome);
// "7s", "2m05s", "3h07m"
std::string duration_text(double seconds);

class Progress {
 public:
  explicit Progress(int num_points, std::FILE* stream = stderr);

  // Searches add points to those planned.
  void expect(int num_points) { state_.num_points = num_points; }
  void begin_point(const std::string& label);
  // `outcome`: the point's state.
  void end_point(const std::string& outcome);
  // Wipes the redrawn line so that other output starts on a clean one.
  void clear();

 private:
  void redraw();

  std::FILE* stream_;
  enum class Style { bar, lines } style_;
  double start_s_;
  ProgressState state_;
};

}  // namespace epsweep
