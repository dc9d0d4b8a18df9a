// The CPU's kernel table of an ops.def that lists Orphan. Its cpu.cpp was forgotten unless WITH_KERNELS is defined.
#include "lamina/kernels/cpu/table.cpp"

#ifdef WITH_KERNELS
template <>
std::span<const lamina::Variant> lamina::cpu_variants<lamina::Orphan>() {
  return {};
}
#endif

int main() { return static_cast<int>(lamina::cpu_kernel_table(lamina::Isa::baseline).entry(0).all.size()) - 1; }
