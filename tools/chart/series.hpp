// One series of points, and what of it a line chart draws: pieces between the gaps, thinned to what the width can show,
// noisy ones with their trend. Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace lamina::tools {

/// Values that are not finite are gaps; where one value is missing the line goes on, so that a series measured at every
/// hundredth point is still a line.
struct Series {
  std::string name = {};
  int color = 0;
  bool dashed = false;
  bool smooth = false;         ///< draws the noisy values light and a moving mean bold
  std::vector<double> x = {};  ///< ascending
  std::vector<double> y = {};
};

/// Moving mean over about `window` values (a triangle), not across gaps. `window` <= 1 gives the values back.
std::vector<double> smoothed(const std::vector<double>& values, int window);

using Points = std::vector<std::pair<double, double>>;

/// The series' finite points, cut where more than one value is missing by the measure of its own spacing.
/// `positive` leaves out what a log axis cannot show.
std::vector<Points> runs_of(const std::vector<double>& x, const std::vector<double>& y, bool positive);

/// At most about `limit` points: of every stretch of the x axis its first, lowest, highest and last.
Points thinned(const Points& points, std::size_t limit);

/// About `limit` evenly chosen points, the last kept.
Points sampled(const Points& points, std::size_t limit);

struct Drawn {
  const Series* series = nullptr;
  std::vector<Points> raw;
  std::vector<Points> line;  ///< what is bold: smoothed, or the values themselves
  std::size_t count = 0;
};

/// What to draw of a series, which must live longer.
Drawn prepare(const Series& series, bool positive);

}  // namespace lamina::tools
