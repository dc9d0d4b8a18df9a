#include "lamina/tools/chart/legend.hpp"

#include "lamina/tools/chart/markup.hpp"

namespace lamina::tools {

std::string legend(const std::vector<LegendItem>& items) {
  std::string out = "<div class=\"legend\">";
  for (const LegendItem& item : items) {
    add(out, "<span><i class=\"{}{}\"></i>{}</span>", color_class(item.color), item.thin ? " thin" : "",
        escape_html(item.name));
  }
  return out + "</div>";
}

}  // namespace lamina::tools
