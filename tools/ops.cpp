#include "lamina/tools/ops.hpp"

#include <algorithm>

#include "lamina/kernels/op_info.hpp"
#include "lamina/kernels/table.hpp"
#include "lamina/tools/device_kinds.hpp"
#include "lamina/tools/table.hpp"

namespace lamina::tools {

namespace {

constexpr DType kFloating[] = {DType::f32, DType::f64, DType::bf16, DType::f16};

void add_word(std::string& words, std::string_view word) {
  if ((" " + words + " ").find(fmt::format(" {} ", word)) == std::string::npos) {
    words += fmt::format("{}{}", words.empty() ? "" : " ", word);
  }
}

// The floating dtypes in which a variant runs any of the op's samples. Variants look at shapes and dtypes only.
std::string dtypes_of(const OpInfo& op, const Variant& variant) {
  std::string words;
  for (const DType dtype : kFloating) {
    for (const OpInfo::Case& sample : op.samples) {
      std::vector<Meta> metas;
      // A sample of that dtype stays as it is; those of f32 are turned into it.
      const bool own = std::any_of(sample.inputs.begin(), sample.inputs.end(),
                                   [&](const SampleOperand& o) { return o.dtype == dtype && dtype != DType::f32; });
      bool floats = sample.inputs.empty() || own;
      for (const SampleOperand& o : sample.inputs) {
        floats = floats || o.dtype == DType::f32;
        if (own) {
          metas.push_back({o.shape, o.dtype});
          continue;
        }
        const DType changed = o.accumulated ? accumulator_of(dtype) : dtype;
        metas.push_back({o.shape, o.dtype == DType::f32 ? changed : o.dtype});
      }
      if (!floats || (sample.inputs.empty() && dtype != DType::f32)) continue;
      try {
        const Metas outputs = op.record->infer(sample.attrs.get(), metas);
        std::vector<Layout> layouts;
        layouts.reserve(metas.size() + outputs.size());
        auto operands = [&](MetasIn of) {
          std::vector<Operand> list;
          for (const Meta& m : of) list.push_back({nullptr, &layouts.emplace_back(m.shape), m.dtype});
          return list;
        };
        const std::vector<Operand> in = operands(metas), out = operands(outputs);
        if (variant.supports(sample.attrs.get(), in, out)) {
          add_word(words, name_of(dtype));
          break;
        }
      } catch (const Error&) {  // not a dtype of this op
      }
    }
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
    std::string algorithms;
    for (const Device& device : devices) {
      const KernelTable::Entry& entry = device.state()->kernels->entry(op.record->id);
      std::string dtypes;
      for (const Variant* v : entry.usable) {
        for (const DType dtype : kFloating) {
          if ((" " + dtypes_of(op, *v) + " ").find(fmt::format(" {} ", name_of(dtype))) != std::string::npos) {
            add_word(dtypes, name_of(dtype));
          }
        }
      }
      row.push_back(entry.usable.empty() ? "-" : dtypes);
      for (const Variant* v : entry.all) add_word(algorithms, algorithm_of(op, device.kind(), *v));
    }
    row.push_back(algorithms);
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
      table.add({std::string(v->name), dtypes_of(op, *v), processor ? std::string(name_of(v->isa)) : "", here,
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
