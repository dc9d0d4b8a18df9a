#include "lamina/tools/info.hpp"

#include <fstream>
#include <thread>

#include "lamina/core/thread_pool.hpp"
#include "lamina/kernels/cpu/isa.hpp"
#include "lamina/kernels/cpu/peak.hpp"
#include "lamina/tools/table.hpp"
#include "lamina/tools/train.hpp"

namespace lamina::tools {

namespace {

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

}  // namespace

int info() {
  const RunRecord::Build build = build_info();
  Table table;
  table.add({"lamina", version_line().substr(std::string_view("lamina ").size())});
  table.add({"compiler", build.compiler});
  table.add({"cpu", cpu_model()});
  table.add({"cpus usable", std::to_string(available_cpus())});
  std::string isas;
  for (const Isa isa : usable_isas(CpuFeatures::read())) {
    isas += fmt::format("{}{}", isas.empty() ? "" : ", ", name_of(isa));
  }
  table.add({"instruction sets", isas});
  const int threads = available_cpus();
  for (const Isa isa : usable_isas(CpuFeatures::read())) {
    for (const int n : threads > 1 ? std::vector<int>{1, threads} : std::vector<int>{1}) {
      table.add({fmt::format("peak f32, {}, {} thread{}", name_of(isa), n, n > 1 ? "s" : ""),
                 fmt::format("{:.1f} GFLOP/s", measure_peak_flops(isa, n) / 1e9)});
    }
  }
  for (const int n : threads > 1 ? std::vector<int>{1, threads} : std::vector<int>{1}) {
    table.add({fmt::format("memory, a = b + c, {} thread{}", n, n > 1 ? "s" : ""),
               fmt::format("{:.1f} GB/s", measure_bandwidth(n) / 1e9)});
  }
  fmt::print("{}", table.to_text());
  return 0;
}

}  // namespace lamina::tools
