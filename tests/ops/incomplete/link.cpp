// The CPU's kernel table of an ops.def that lists Orphan. Its cpu.cpp was forgotten unless WITH_KERNELS is defined.
#include "lamina/kernels/cpu/table.hpp"
#include "lamina/kernels/op_list.hpp"

#ifdef WITH_KERNELS
namespace lamina {
template <>
std::span<const Variant> cpu_variants<Orphan>() {
  return {};
}
}  // namespace lamina
#endif

#include "lamina/kernels/cpu/table.cpp"

int main() { return static_cast<int>(lamina::cpu_kernel_table(lamina::Isa::baseline).entry(0).all.size()) - 1; }
