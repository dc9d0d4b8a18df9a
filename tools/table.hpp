// Table: small aligned text tables for the terminal, and numbers as people write them. Values; pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lamina::tools {

/// "0 B", "512 B", "1.50 KiB", "12.3 MiB", "345 GiB". Three digits; "-" for what is not finite.
std::string human_bytes(double bytes);
/// "950", "12.3k", "1.20M", "3.45G". Integers below 10000 stay whole.
std::string human_count(double count);
/// "1.20 MFLOP", "3.45 TFLOP".
std::string human_flops(double flops);
/// "850 ns", "12.3 us", "4.56 ms", "7.89 s", "2m 05s", "1h 02m", "3d 04h".
std::string human_seconds(double seconds);
/// "12.3", "0.0123", "1.2e-07": that many significant digits, no trailing zeros beyond the point.
std::string human_number(double value, int digits = 4);

/// Cells on a terminal: code points, combining marks not counted apart.
std::size_t display_width(std::string_view utf8);

/// Columns whose cells all start like numbers are aligned to the right, others to the left.
class Table {
 public:
  /// No headers, no header line.
  explicit Table(std::vector<std::string> headers = {}) : headers_(std::move(headers)) {}
  /// Rows may have different lengths.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  /// Lines ending in newlines, two spaces between columns, nothing trailing.
  std::string to_text() const;

 private:
  std::vector<std::string> headers_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace lamina::tools
