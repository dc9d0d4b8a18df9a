#include "lamina/tools/report/names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "lamina/tools/chart/markup.hpp"

namespace lamina::tools {

std::string joined(const Names& parts, std::string_view separator) {
  std::string out;
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    if (!out.empty()) out += separator;
    out += part;
  }
  return out;
}

Names parts_of(const RunRecord& r) {
  const auto counted = [](const std::optional<std::int64_t>& n, std::string_view what) {
    return n ? fmt::format("{} {}{}", *n, what, *n == 1 ? "" : "s") : std::string();
  };
  return {r.model, r.strategy, r.data, counted(r.workers, "worker"), r.seed ? fmt::format("seed {}", *r.seed) : ""};
}

Names names_of(Runs runs) {
  std::vector<Names> parts;
  for (const RunReport& run : runs) parts.push_back(parts_of(run.record));
  Names names;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!runs[i].title.empty()) {
      names.push_back(runs[i].title);
      continue;
    }
    Names telling;
    for (std::size_t p = 0; p < parts[i].size(); ++p) {
      const bool differs = std::ranges::any_of(parts, [&](const Names& other) { return other[p] != parts[0][p]; });
      if (differs || (runs.size() == 1 && p < 2)) telling.push_back(parts[i][p]);
    }
    names.push_back(joined(telling));
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) names[i] = fmt::format("run {}", i + 1);
  }
  const Names plain = names;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (std::ranges::count(plain, plain[i]) > 1) names[i] += fmt::format(" ({})", i + 1);
  }
  return names;
}

std::string common_parts(Runs runs) {
  Names common = parts_of(runs[0].record);
  for (const RunReport& run : runs) {
    const Names parts = parts_of(run.record);
    for (std::size_t p = 0; p < parts.size(); ++p) {
      if (parts[p] != common[p]) common[p].clear();
    }
  }
  return joined(common);
}

int color_of(std::size_t run) { return static_cast<int>(run % kChartColors); }

std::string chip(std::size_t run) { return fmt::format("<i class=\"c{}\"></i>", color_of(run)); }

std::string run_heading(Runs runs, const Names& names, std::size_t run, std::string_view what, Colors colors) {
  if (runs.size() == 1) return fmt::format("<h3>{}</h3>", escape_html(what));
  return fmt::format("<h3>{}{} <small>{}</small></h3>", colors == Colors::runs ? chip(run) + " " : "",
                     escape_html(names[run]), escape_html(what));
}

}  // namespace lamina::tools
