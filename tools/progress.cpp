#include "lamina/tools/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>

#include "lamina/core/trace.hpp"
#include "lamina/tools/table.hpp"

namespace lamina::tools {

namespace {

double steady_seconds() { return static_cast<double>(Trace::now()) * 1e-9; }

bool redraws(std::FILE* out) {
  const char* term = std::getenv("TERM");
  return isatty(fileno(out)) != 0 && term != nullptr && std::string_view(term) != "dumb";
}

bool utf8_locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string_view locale(value);
    return locale.find("UTF-8") != std::string_view::npos || locale.find("utf8") != std::string_view::npos;
  }
  return false;
}

// A bar of `cells` cells, drawn in eighths where the terminal can.
std::string bar(double fraction, int cells, bool unicode) {
  static constexpr std::string_view eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const int parts = static_cast<int>(std::clamp(fraction, 0.0, 1.0) * cells * 8);
  const int full = parts / 8;
  std::string out;
  for (int i = 0; i < full; ++i) out += unicode ? "█" : "#";
  int used = full;
  if (unicode && parts % 8 != 0) {
    out += eighths[parts % 8];
    ++used;
  }
  out.append(static_cast<std::size_t>(cells - used), unicode ? ' ' : '.');
  return unicode ? "▕" + out + "▏" : "[" + out + "]";
}

// The first `width` cells.
std::string truncated(std::string_view text, int width) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = std::max<std::size_t>(lamina::detail::utf8_sequence(text), 1);
    if (static_cast<int>(display_width(out)) >= width) break;
    out += text.substr(0, length);
    text.remove_prefix(length);
  }
  return out;
}

// One line of printable text: a note must not move the cursor.
std::string printable(std::string_view text) {
  std::string out = lamina::detail::valid_utf8(text);
  std::ranges::replace_if(
      out, [](char c) { return (c >= 0 && c < ' ') || c == '\x7f'; }, ' ');
  return out;
}

}  // namespace

Progress::Progress(const Options& options) : options_(options), unicode_(utf8_locale()) {
  if (!options_.clock) options_.clock = steady_seconds;
  if (options_.style == Style::automatic) options_.style = redraws(options_.out) ? Style::bar : Style::lines;
  start_ = last_draw_ = rate_time_ = options_.clock();
  state_.step = rate_step_ = options_.first_step;
}

Progress::~Progress() { finish(); }

void Progress::update(const State& state) {
  if (options_.style == Style::quiet || finished_) return;
  state_ = state;
  if (state.note != note_) note_ = state.note;
  state_.note = {};
  pending_ = true;
  const double now = options_.clock();
  const bool never = std::isnan(steps_per_s_);
  const double since = now - rate_time_;
  if (since >= (never ? 0.02 : 0.5) && state.step > rate_step_) {  // speeds over half seconds, averaged over about five
    const double weight = never ? 1.0 : 1 - std::exp(-since / 5);
    const auto blend = [&](double& rate, double fresh) { rate = never ? fresh : rate + weight * (fresh - rate); };
    blend(steps_per_s_, static_cast<double>(state.step - rate_step_) / since);
    blend(examples_per_s_, static_cast<double>(state.examples - rate_examples_) / since);
    rate_time_ = now;
    rate_step_ = state.step;
    rate_examples_ = state.examples;
  }
  const bool due = options_.style == Style::bar ? !drawn_ || now - last_draw_ >= options_.redraw_s
                                                : now - last_draw_ >= options_.line_s;
  if (due) draw(now);
}

double Progress::seconds_left() const noexcept {
  if (options_.total_steps <= 0) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(std::max<std::int64_t>(options_.total_steps - state_.step, 0)) / steps_per_s_;
}

int Progress::columns() const noexcept {
  if (options_.width > 0) return options_.width;
  winsize size{};
  if (ioctl(fileno(options_.out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

std::string Progress::text(int width) const {
  const bool known = options_.total_steps > 0;
  const bool ended = finished_;
  std::string tail;
  if (!note_.empty()) tail += "  " + printable(note_);
  if (std::isfinite(state_.loss)) tail += fmt::format("  loss {:.4g}", state_.loss);
  if (std::isfinite(examples_per_s_)) {
    const double elapsed = options_.clock() - start_;
    const double rate = ended && elapsed > 0 ? static_cast<double>(state_.examples) / elapsed : examples_per_s_;
    tail += fmt::format("  {} ex/s", human_count(rate >= 100 ? std::round(rate) : rate));
  }
  if (ended) {
    tail += fmt::format("  in {}", human_seconds(options_.clock() - start_));
  } else if (known && std::isfinite(seconds_left())) {
    const double left = seconds_left();
    tail += fmt::format("  {} left", left < 100 ? fmt::format("{:.0f} s", left) : human_seconds(left));
  }
  const std::string total = fmt::format("{}", options_.total_steps);
  const std::string count =
      known ? fmt::format("{:>{}}/{}", state_.step, total.size(), total) : fmt::format("step {}", state_.step);
  if (options_.style == Style::lines) return (known ? "step " : "") + count + tail;
  if (!known) return truncated(count + tail, width);

  const double fraction = static_cast<double>(state_.step) / static_cast<double>(options_.total_steps);
  const std::string percent = fmt::format("{:3.0f}%", std::floor(100 * std::clamp(fraction, 0.0, 1.0)));
  const int used = static_cast<int>(display_width(percent) + display_width(count) + display_width(tail)) + 4;
  const int cells = std::min(width - used, 30);
  if (cells < 5) return truncated(percent + " " + count + tail, width);
  return percent + " " + bar(fraction, cells, unicode_) + " " + count + tail;
}

void Progress::clear_line() {
  if (drawn_) std::fputs("\r\x1b[K", options_.out);
  drawn_ = false;
}

void Progress::draw(double now) {
  // One column is left free: some terminals wrap when the last one is written.
  const std::string line = text(columns() - 1);
  if (options_.style == Style::bar) {
    std::fputs(("\r" + line + "\x1b[K").c_str(), options_.out);  // a broken pipe must not end a run: errors are ignored
    drawn_ = true;
  } else {
    std::fputs((line + "\n").c_str(), options_.out);
  }
  std::fflush(options_.out);
  last_draw_ = now;
  pending_ = false;
}

void Progress::message(std::string_view text) {
  if (options_.style == Style::quiet) return;
  const bool was_drawn = drawn_;
  clear_line();
  std::fputs((printable(text) + "\n").c_str(), options_.out);
  if (was_drawn && !finished_) {
    draw(options_.clock());
  } else {
    std::fflush(options_.out);
  }
}

void Progress::finish() noexcept {
  if (finished_ || options_.style == Style::quiet) return;
  finished_ = true;
  try {
    if (pending_ || drawn_) draw(options_.clock());
    if (drawn_) std::fputs("\n", options_.out);
    std::fflush(options_.out);
  } catch (...) {  // a closed pipe or no memory: nobody is left to tell
  }
  drawn_ = false;
}

}  // namespace lamina::tools
