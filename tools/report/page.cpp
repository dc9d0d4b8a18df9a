#include "lamina/tools/report/page.hpp"

#include <fmt/format.h>

#include <string_view>

#include "lamina/tools/chart/markup.hpp"
#include "lamina/tools/report/names.hpp"
#include "lamina/tools/report/sections.hpp"
#include "lamina/tools/report/style.hpp"

namespace lamina::tools {

namespace {

// Thin sheets above one another: what a lamina is.
constexpr std::string_view kLogo =
    R"svg(<svg viewBox="0 0 48 48" aria-hidden="true"><g fill="none" stroke-width="2.6" stroke-linejoin="round">)svg"
    R"svg(<path style="stroke:var(--c2)" d="M4 33 24 24 44 33 24 42Z"/>)svg"
    R"svg(<path style="stroke:var(--c1);fill:var(--page)" d="M4 24 24 15 44 24 24 33Z"/>)svg"
    R"svg(<path style="stroke:var(--c0);fill:var(--page)" d="M4 15 24 6 44 15 24 24Z"/></g></svg>)svg";

}  // namespace

std::string render_report(Runs runs) {
  std::string title = "lamina report";
  std::string subtitle = "no runs";
  const Names names = names_of(runs);
  if (runs.size() == 1) {
    const RunRecord& r = runs[0].record;
    title = !runs[0].title.empty() ? runs[0].title : joined({r.model, r.data}, " on ");
    if (title.empty()) title = "lamina report";
    Names parts = parts_of(r);
    if (runs[0].title.empty()) parts[0].clear(), parts[2].clear();
    if (!r.devices.empty() && r.per_worker.size() <= 1) parts.push_back(r.devices[0]);
    subtitle = joined(parts);
  } else if (runs.size() > 1) {
    subtitle = common_parts(runs);
    title = runs.size() <= 3 ? joined(names, " vs. ") : fmt::format("{} runs", runs.size());
  }

  std::string out =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "script-src 'unsafe-inline'\"><meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">";
  add(out, "<title>{}</title><style>{}</style></head>\n<body><main>", escape_html(title), kReportStyle);
  add(out, "<header>{}<div><h1>{}</h1><p>{}</p></div></header>\n", kLogo, escape_html(title), escape_html(subtitle));
  if (runs.empty()) {
    out += "<div class=\"card\"><p class=\"none\">There is nothing to report.</p></div>";
  } else {
    if (runs.size() > 1) {
      out += "<div class=\"runs\">";
      for (std::size_t i = 0; i < runs.size(); ++i) add(out, "<span>{}{}</span>", chip(i), escape_html(names[i]));
      out += "</div>";
    }
    for (const auto& section : {headlines_section(runs, names), curves_section(runs, names), time_section(runs, names),
                                timeline_section(runs, names), configuration_section(runs, names)}) {
      out += section;
      out += '\n';
    }
  }
  out += "<footer>Written by lamina. This page loads nothing.</footer></main>";
  add(out, "<script>{}</script></body></html>\n", kReportScript);
  return out;
}

}  // namespace lamina::tools
