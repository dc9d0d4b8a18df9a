// Progress: how far a run has come. On a terminal one line that is redrawn in place; otherwise a plain line every few
// seconds and one at the end; nothing when quiet. Belongs to one thread.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <string>
#include <string_view>

namespace lamina::tools {

class Progress {
 public:
  enum class Style { automatic, bar, lines, quiet };
  struct Options {
    std::FILE* out = stderr;
    Style style = Style::automatic;      ///< a bar on a terminal that can redraw a line, else lines
    std::int64_t total_steps = 0;        ///< 0: unknown, no percentage and no time left
    std::int64_t first_step = 0;         ///< steps that were done before (a resumed run)
    double redraw_s = 0.1;               ///< the bar, at most this often
    double line_s = 5;                   ///< lines, at most this often
    int width = 0;                       ///< columns; 0 asks the terminal at every redraw
    std::function<double()> clock = {};  ///< seconds; empty for the steady clock (tests)
  };
  struct State {
    std::int64_t step = 0;      ///< steps done
    std::int64_t examples = 0;  ///< examples done since first_step
    double loss = std::numeric_limits<double>::quiet_NaN();
    std::string_view note = {};  ///< a short extra, such as "epoch 2/5"
  };

  explicit Progress(const Options& options);
  /// Ends the line, whatever ended the run.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Call after every step: costs a clock reading when there is nothing to draw.
  void update(const State& state);
  /// A whole line of its own, above the bar ("epoch 1: test accuracy 87.1 %"). Nothing when quiet.
  void message(std::string_view text);
  /// Draws the last state and ends the line. The destructor does the same.
  void finish() noexcept;

  /// Seconds left by the recent speed; NaN when unknown.
  double seconds_left() const noexcept;

 private:
  std::string text(int width) const;
  void draw(double now);
  void clear_line();
  int columns() const noexcept;

  Options options_;
  bool unicode_ = false;
  bool drawn_ = false;    // a bar is on the current line
  bool pending_ = false;  // a state has not been shown
  bool finished_ = false;
  State state_;
  std::string note_;
  double start_ = 0;
  double last_draw_ = 0;
  double rate_time_ = 0;  // when the speeds were last measured, and where
  std::int64_t rate_step_ = 0;
  std::int64_t rate_examples_ = 0;
  double steps_per_s_ = std::numeric_limits<double>::quiet_NaN();
  double examples_per_s_ = std::numeric_limits<double>::quiet_NaN();
};

}  // namespace lamina::tools
