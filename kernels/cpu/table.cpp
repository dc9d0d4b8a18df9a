#include "lamina/kernels/cpu/table.hpp"

#include "lamina/kernels/cpu/isa.hpp"
#include "lamina/kernels/op_list.hpp"
#include "lamina/kernels/reference.hpp"

namespace lamina {

namespace {

template <Op O>
const Variant& cpu_reference() {
  static const std::string name = fmt::format("{}.cpu.reference", O::name);
  static const Variant variant = reference_variant<O>(name);
  return variant;
}

}  // namespace

KernelTable cpu_kernel_table(Isa max_isa) {
  const CpuFeatures features = CpuFeatures::read();
  KernelTable table;
  auto add = [&](int op, std::span<const Variant> own, const Variant& reference) {
    KernelTable::Entry& entry = table.entry(op);
    for (const Variant& v : own) {
      entry.all.push_back(&v);
      if (v.isa != Isa::wide && v.isa <= max_isa && can_run(v.isa, features)) entry.usable.push_back(&v);
    }
    entry.all.push_back(&reference);
    entry.usable.push_back(&reference);
  };
#define LAMINA_ADD(O) add(OpId<O>::value, cpu_variants<O>(), cpu_reference<O>());
  LAMINA_FOR_EACH_OP(LAMINA_ADD)
#undef LAMINA_ADD
  return table;
}

}  // namespace lamina
