// What was run: one table of all runs' options, results and versions, so that what differs can be marked.
#include "lamina/tools/report/sections.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "lamina/tools/chart/markup.hpp"
#include "lamina/tools/report/text.hpp"
#include "lamina/tools/table.hpp"

namespace lamina::tools {

namespace {

std::string option_text(const nlohmann::ordered_json& value) {
  if (value.is_null()) return {};
  if (value.is_string()) return value.get<std::string>();
  return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

std::string configuration_section(Runs runs, const Names& names) {
  std::vector<std::pair<std::string, Names>> rows;
  const auto row = [&](const std::string& key, const std::function<std::string(const RunRecord&)>& value) {
    Names values;
    for (const RunReport& run : runs) values.push_back(value(run.record));
    if (std::ranges::any_of(values, [](const std::string& v) { return !v.empty(); })) rows.emplace_back(key, values);
  };
  const auto whole = [](const auto& n) { return n ? fmt::format("{}", *n) : std::string(); };
  row("model", [](const RunRecord& r) { return r.model; });
  row("data", [](const RunRecord& r) { return r.data; });
  row("strategy", [](const RunRecord& r) { return r.strategy; });
  row("workers", [&](const RunRecord& r) { return whole(r.workers); });
  row("devices", [](const RunRecord& r) { return joined(r.devices, ", "); });
  row("seed", [&](const RunRecord& r) { return whole(r.seed); });
  row("steps", [&](const RunRecord& r) { return whole(r.steps); });
  row("examples", [&](const RunRecord& r) { return whole(r.examples); });
  row("parameters", [&](const RunRecord& r) { return whole(r.metrics.parameters); });
  row("bytes sent",
      [](const RunRecord& r) { return r.bytes_sent ? human_bytes(number(r.bytes_sent)) : std::string(); });
  Names more;
  for (const RunReport& run : runs) {
    for (const auto& [key, value] : run.record.metrics.more) {
      if (std::ranges::find(more, key) == more.end()) more.push_back(key);
    }
  }
  for (const std::string& key : more) {
    row(key, [&](const RunRecord& r) {
      for (const auto& [name, value] : r.metrics.more) {
        if (name == key && std::isfinite(value)) return human_number(value, 6);
      }
      return std::string();
    });
  }
  Names keys;
  for (const RunReport& run : runs) {
    if (!run.record.options.is_object()) continue;
    for (const auto& [key, value] : run.record.options.items()) {
      if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
    }
  }
  for (const std::string& key : keys) {
    row(key, [&](const RunRecord& r) {
      const auto place = r.options.find(key);
      return place == r.options.end() ? std::string() : option_text(*place);
    });
  }
  row("version", [](const RunRecord& r) { return joined({r.build.version, r.build.git}); });
  row("compiler", [](const RunRecord& r) { return r.build.compiler; });
  row("instruction set", [](const RunRecord& r) { return r.build.isa; });

  std::string out = "<h2>Configuration</h2><div class=\"stack\">";
  const auto table = [&](std::size_t begin, std::size_t end) {
    out += "<div class=\"scroll\"><table>";
    if (runs.size() > 1) {
      out += "<thead><tr><th></th>";
      for (std::size_t i = 0; i < runs.size(); ++i) add(out, "<th>{} {}</th>", chip(i), escape_html(names[i]));
      out += "</tr></thead>";
    }
    out += "<tbody>";
    for (std::size_t r = begin; r < end; ++r) {
      const std::string& key = rows[r].first;
      const Names& values = rows[r].second;
      const bool differs = std::ranges::any_of(values, [&](const std::string& v) { return v != values[0]; });
      add(out, "<tr{}><th>{}</th>", differs ? " class=\"differs\"" : "", escape_html(key));
      for (const std::string& v : values) add(out, "<td>{}</td>", v.empty() ? "–" : escape_html(v));
      out += "</tr>";
    }
    out += "</tbody></table></div>";
  };
  if (runs.size() == 1 && rows.size() > 6) {  // one value a row leaves room for two columns
    const std::size_t half = (rows.size() + 1) / 2;
    out += "<div class=\"pair\"><div class=\"card\">";
    table(0, half);
    out += "</div><div class=\"card\">";
    table(half, rows.size());
    out += "</div></div>";
  } else {
    out += "<div class=\"card\">";
    table(0, rows.size());
    out += "</div>";
  }
  std::string commands;
  for (const RunReport& run : runs) {
    if (!run.record.command.empty()) add(commands, "<pre>{}</pre>", escape_html(run.record.command));
  }
  if (!commands.empty()) add(out, "<div class=\"card\"><h3>Command</h3>{}</div>", commands);
  return out + "</div>";
}

}  // namespace lamina::tools
