#include "lamina/tools/info.hpp"

#include <fstream>
#include <thread>

#include "lamina/core/thread_pool.hpp"
#include "lamina/kernels/cpu/device.hpp"
#include "lamina/kernels/cpu/isa.hpp"
#include "lamina/kernels/cpu/peak.hpp"
#include "lamina/kernels/op_info.hpp"
#include "lamina/kernels/table.hpp"
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

int ops(const std::string& name) {
  const Device cpu = cpu_device({.threads = 1});
  const KernelTable& kernels = *cpu.state()->kernels;
  bool found = false;
  Table table(name.empty() ? std::vector<std::string>{"op", "cpu", "variants", "cost of its first sample"}
                           : std::vector<std::string>{"variant", "instruction set", "here", "strided operands"});
  for (const OpInfo& op : all_ops()) {
    const KernelTable::Entry& entry = kernels.entry(op.record->id);
    if (name.empty()) {
      std::string kinds;  // "vector.f32" of "add.cpu.vector.f32.avx2"
      for (const Variant* v : entry.all) {
        std::string kind(v->name.substr(op.record->name.size() + 5));
        if (const auto isa = kind.rfind("." + std::string(name_of(v->isa))); isa != std::string::npos) kind.resize(isa);
        if ((", " + kinds + ",").find(", " + kind + ",") == std::string::npos)
          kinds += (kinds.empty() ? "" : ", ") + kind;
      }
      std::vector<Meta> metas;
      for (const SampleOperand& o : op.samples.front().inputs) metas.push_back({o.shape, o.dtype});
      const void* attrs = op.samples.front().attrs.get();
      const Cost cost = op.record->cost(attrs, metas, op.record->infer(attrs, metas));
      table.add({std::string(op.record->name), "yes", kinds,
                 fmt::format("{} FLOP, {} B read, {} B written", cost.flops, cost.bytes_read, cost.bytes_written)});
      continue;
    }
    if (op.record->name != name) continue;
    found = true;
    for (const Variant* v : entry.all) {
      const bool usable = std::find(entry.usable.begin(), entry.usable.end(), v) != entry.usable.end();
      table.add({std::string(v->name), std::string(name_of(v->isa)), usable ? "yes" : "no",
                 v->dense ? "copied" : "read in place"});
    }
  }
  if (!name.empty() && !found) fail<ValueError>("ops", "there is no op '{}'; `lamina ops` lists them", name);
  fmt::print("{}", table.to_text());
  return 0;
}

}  // namespace lamina::tools
