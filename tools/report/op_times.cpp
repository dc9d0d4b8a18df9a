#include "lamina/tools/report/op_times.hpp"

#include <algorithm>
#include <functional>
#include <map>

namespace lamina::tools {

std::vector<OpTime> op_times(const TraceSnapshot& trace, std::string_view category) {
  struct Open {
    std::int64_t end;
    std::size_t op;
  };
  std::map<std::uint32_t, std::size_t> index;
  std::vector<OpTime> ops;
  std::vector<std::int64_t> own;
  std::vector<std::vector<Open>> open(trace.lanes.size());
  for (const auto& span : trace.spans) {
    if (!category.empty() && trace.names[span.category] != category) continue;
    const auto [place, added] = index.try_emplace(span.name, ops.size());
    if (added) {
      ops.push_back({.name = trace.names[span.name]});
      own.push_back(0);
    }
    const std::size_t op = place->second;
    auto& around = open.at(static_cast<std::size_t>(span.lane));
    while (!around.empty() && around.back().end <= span.start_ns) around.pop_back();
    own[op] += span.end_ns - span.start_ns;
    if (!around.empty()) own[around.back().op] -= std::min(span.end_ns, around.back().end) - span.start_ns;
    around.push_back({span.end_ns, op});
    ++ops[op].calls;
    ops[op].flops += std::max<std::int64_t>(span.args.flops, 0);
    ops[op].bytes += std::max<std::int64_t>(span.args.bytes, 0);
  }
  for (std::size_t i = 0; i < ops.size(); ++i) ops[i].seconds = static_cast<double>(own[i]) * 1e-9;
  std::ranges::stable_sort(ops, std::greater<>{}, &OpTime::seconds);
  return ops;
}

}  // namespace lamina::tools
