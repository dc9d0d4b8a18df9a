#include "lamina/tools/ops.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "lamina/kernels/op_info.hpp"
#include "lamina/kernels/table.hpp"
#include "lamina/tools/device_kinds.hpp"
#include "lamina/tools/table.hpp"

namespace lamina::tools {

namespace {

// The sample's operands with what is f32 in it turned into `dtype`; none where nothing is. A sample that is of another
// dtype itself has that one only.
std::optional<std::vector<Meta>> operands_in(const OpInfo::Case& sample, DType dtype) {
  std::vector<Meta> metas;
  DType own = DType::f32;
  bool changes = dtype == DType::f32;
  for (const SampleOperand& o : sample.inputs) {
    if (is_floating(o.dtype) && o.dtype != DType::f32) own = o.dtype;
    changes = changes || o.dtype == DType::f32;
    metas.push_back({o.shape, o.dtype});
  }
  if (own != DType::f32) return own == dtype ? std::optional(metas) : std::nullopt;
  for (std::size_t i = 0; i < metas.size(); ++i) {
    if (metas[i].dtype == DType::f32) metas[i].dtype = sample.inputs[i].accumulated ? accumulator_of(dtype) : dtype;
  }
  return changes ? std::optional(metas) : std::nullopt;
}

// Variants look at shapes and dtypes only, so that this needs no memory.
bool runs(const OpInfo& op, const OpInfo::Case& sample, const Variant& variant, MetasIn metas) {
  Metas outputs;
  try {
    outputs = op.record->infer(sample.attrs.get(), metas);
  } catch (const Error&) {  // not a dtype of this op
    return false;
  }
  std::vector<Layout> layouts;
  layouts.reserve(metas.size() + outputs.size());
  const auto operands = [&](MetasIn of) {
    std::vector<Operand> list;
    for (const Meta& m : of) list.push_back({nullptr, &layouts.emplace_back(m.shape), m.dtype});
    return list;
  };
  const std::vector<Operand> in = operands(metas), out = operands(outputs);
  return static_cast<bool>(variant.supports(sample.attrs.get(), in, out));
}

// The floating dtypes in which one of the variants runs one of the op's samples: "f32 f64".
std::string dtypes_of(const OpInfo& op, std::span<const Variant* const> variants) {
  std::string words;
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
    const bool found = std::ranges::any_of(op.samples, [&](const OpInfo::Case& sample) {
      const auto metas = operands_in(sample, dtype);
      return metas && std::ranges::any_of(variants, [&](const Variant* v) { return runs(op, sample, *v, *metas); });
    });
    if (found) words += fmt::format("{}{}", words.empty() ? "" : " ", name_of(dtype));
  }
  return words;
}

// "vector.f32" of "add.cpu.vector.f32.avx2"
std::string algorithm_of(const OpInfo& op, std::string_view device, const Variant& v) {
  std::string kind(v.name.substr(op.record->name.size() + device.size() + 2));
  if (const auto isa = kind.rfind("." + std::string(name_of(v.isa))); isa != std::string::npos) kind.resize(isa);
  return kind;
}

Table all(std::span<const OpInfo> ops) {
  std::vector<std::string> head{"op"};
  for (const DeviceKind& kind : device_kinds()) head.push_back(fmt::format("dtypes on {}", kind.name));
  head.insert(head.end(), {"variants", "cost of its first sample"});
  Table table(head);
  std::vector<Device> devices;
  for (const DeviceKind& kind : device_kinds()) devices.push_back(kind.open(1));
  for (const OpInfo& op : ops) {
    std::vector<std::string> row{std::string(op.record->name)};
    std::vector<std::string> algorithms;
    for (const Device& device : devices) {
      const KernelTable::Entry& entry = device.state()->kernels->entry(op.record->id);
      row.push_back(entry.usable.empty() ? "-" : dtypes_of(op, entry.usable));
      for (const Variant* v : entry.all) {
        std::string algorithm = algorithm_of(op, device.kind(), *v);
        if (std::ranges::find(algorithms, algorithm) == algorithms.end()) algorithms.push_back(std::move(algorithm));
      }
    }
    row.push_back(fmt::format("{}", fmt::join(algorithms, " ")));
    std::vector<Meta> metas;
    for (const SampleOperand& o : op.samples.front().inputs) metas.push_back({o.shape, o.dtype});
    const void* attrs = op.samples.front().attrs.get();
    const Cost cost = op.record->cost(attrs, metas, op.record->infer(attrs, metas));
    row.push_back(fmt::format("{} FLOP, {} B read, {} B written", cost.flops, cost.bytes_read, cost.bytes_written));
    table.add(row);
  }
  return table;
}

Table one(const OpInfo& op) {
  Table table({"variant", "dtypes", "instruction set", "here", "strided operands"});
  for (const DeviceKind& kind : device_kinds()) {
    const Device device = kind.open(1);
    const KernelTable::Entry& entry = device.state()->kernels->entry(op.record->id);
    const bool processor = kind.name == "cpu";
    if (entry.all.empty()) table.add({fmt::format("none on {}", kind.name), "", "", std::string(entry.missing), ""});
    for (const Variant* v : entry.all) {
      const bool usable = std::find(entry.usable.begin(), entry.usable.end(), v) != entry.usable.end();
      const char* here = usable ? "yes" : v->isa == Isa::wide ? "in tests only" : "no such instructions";
      table.add({std::string(v->name), dtypes_of(op, {&v, 1}), processor ? std::string(name_of(v->isa)) : "", here,
                 v->dense ? "copied" : "read in place"});
    }
  }
  return table;
}

}  // namespace

int ops(const std::string& name) {
  const std::vector<OpInfo> known = all_ops();
  if (name.empty()) {
    fmt::print("{}", all(known).to_text());
    return 0;
  }
  const auto op = std::find_if(known.begin(), known.end(), [&](const OpInfo& o) { return o.record->name == name; });
  if (op == known.end()) fail<ValueError>("ops", "there is no op '{}'; `lamina ops` lists them", name);
  fmt::print("{}", one(*op).to_text());
  return 0;
}

}  // namespace lamina::tools
