#include "lamina/tools/report_command.hpp"

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "lamina/core/error.hpp"
#include "lamina/core/io/atomic_file.hpp"
#include "lamina/core/io/file.hpp"
#include "lamina/core/io/json.hpp"
#include "lamina/tools/report/page.hpp"

namespace lamina::tools {

namespace {

// The spans of a Chrome trace that to_chrome_json wrote. Other files may lack what it needs: FormatError.
TraceSnapshot read_trace(const std::string& file) {
  const nlohmann::json json = read_json(file, {.bytes = std::size_t{1} << 30});
  TraceSnapshot trace;
  std::map<std::pair<int, int>, std::int32_t> lanes;
  try {
    for (const nlohmann::json& e : json.at("traceEvents")) {
      const std::string phase = e.at("ph");
      if (phase == "M" && e.at("name") == "thread_name") {
        lanes[{e.at("pid"), e.at("tid")}] = static_cast<std::int32_t>(trace.lanes.size());
        trace.lanes.push_back({e.at("pid"), e.at("args").at("name")});
      }
    }
    for (const nlohmann::json& e : json.at("traceEvents")) {
      if (e.at("ph") != "X") continue;
      TraceSnapshot::Span span;
      span.name = trace.name_index(e.at("name").get<std::string>());
      span.category = trace.name_index(e.value("cat", std::string()));
      span.lane = lanes.at({e.at("pid"), e.at("tid")});
      span.start_ns = std::llround(e.at("ts").get<double>() * 1000);
      span.end_ns = span.start_ns + std::llround(e.at("dur").get<double>() * 1000);
      const nlohmann::json args = e.value("args", nlohmann::json::object());
      span.args = {args.value("bytes", std::int64_t{-1}), args.value("flops", std::int64_t{-1}),
                   args.value("step", std::int64_t{-1})};
      trace.spans.push_back(span);
    }
  } catch (const std::exception& e) {
    fail<FormatError>("report", "{}: not a trace of lamina: {}", file, e.what());
  }
  return trace;
}

}  // namespace

int report(const ReportOptions& options) {
  if (!options.traces.empty() && options.traces.size() != options.runs.size()) {
    fail<ValueError>("report", "{} traces for {} runs; none, or one a run", options.traces.size(), options.runs.size());
  }
  std::vector<RunReport> reports;
  for (std::size_t i = 0; i < options.runs.size(); ++i) {
    const std::vector<std::byte> bytes = read_file(options.runs[i], std::uint64_t{1} << 30);
    RunReport r;
    try {
      r.record = RunRecord::from_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    } catch (const std::exception& e) {
      fail<FormatError>("report", "{}: not the record of a run: {}", options.runs[i], e.what());
    }
    if (!options.traces.empty()) {
      r.trace = read_trace(options.traces[i]);
      r.ops = op_times(*r.trace, "op");
    }
    reports.push_back(std::move(r));
  }
  write_file(options.out, render_report(reports));
  return 0;
}

}  // namespace lamina::tools
