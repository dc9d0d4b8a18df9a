#include "lamina/tools/chart/bars.hpp"

#include <algorithm>

#include "lamina/tools/chart/markup.hpp"

namespace lamina::tools {

std::string stacked_bars(const std::vector<BarRow>& rows) {
  const auto amount = [](double v) { return drawable(v) && v > 0 ? v : 0.0; };
  double longest = 0;
  for (const BarRow& row : rows) {
    double total = 0;
    for (const BarPart& part : row.parts) total += amount(part.value);
    longest = std::max({longest, total, amount(row.underline)});
  }
  std::string out = "<figure class=\"bars\">";
  for (const BarRow& row : rows) {
    add(out,
        "<div class=\"row\"><span class=\"who\">{}</span><svg viewBox=\"0 0 1000 30\" preserveAspectRatio=\"none\" "
        "role=\"img\" aria-label=\"{}\">",
        escape_html(row.label), escape_html(row.label));
    double at = 0;
    for (const BarPart& part : row.parts) {
      const double length = longest > 0 ? 1000 * amount(part.value) / longest : 0;
      if (length <= 0) continue;
      add(out, "<rect class=\"{}\" x=\"{}\" y=\"0\" width=\"{}\" height=\"22\"><title>{}: {}</title></rect>",
          color_class(part.color), px(at), px(std::max(length - (length > 4 ? 1.5 : 0), 0.5)), escape_html(part.name),
          escape_html(part.value_text));
      at += length;
    }
    if (const double length = longest > 0 ? 1000 * amount(row.underline) / longest : 0; length > 0) {
      add(out, "<rect class=\"{}\" x=\"0\" y=\"24\" width=\"{}\" height=\"4\"><title>{}</title></rect>",
          color_class(row.underline_color), px(length), escape_html(row.underline_text));
    }
    add(out, "</svg><span class=\"end\">{}</span></div>", escape_html(row.end_text));
  }
  return out + "</figure>";
}

}  // namespace lamina::tools
