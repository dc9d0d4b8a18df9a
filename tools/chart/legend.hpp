// Legends: which colour is what. Pure functions; thread-safe. All text given is escaped here.
#pragma once

#include <string>
#include <vector>

namespace lamina::tools {

struct LegendItem {
  std::string name = {};
  int color = 0;
  bool thin = false;  ///< stands for a thin bar
};

/// Colour chips with names, a <div class="legend">.
std::string legend(const std::vector<LegendItem>& items);

}  // namespace lamina::tools
