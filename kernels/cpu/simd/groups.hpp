// Loops over a whole group of tensors as one. Included by vector code after simd.hpp (no include guard).

/// Calls f(tensor, first element, elements) for every block of every tensor in `group`, in parallel. Blocks depend on
/// the sizes only.
template <class F>
void for_each_group_block(Operands group, Executor& executor, F f) {
  std::int64_t blocks = 0;
  for (const Operand& o : group) blocks += (o.count() + kElementwiseBlock - 1) / kElementwiseBlock;
  executor.run(blocks, [&](std::int64_t block) {
    std::int64_t tensor = 0;
    for (;; ++tensor) {
      const std::int64_t own = (group[tensor].count() + kElementwiseBlock - 1) / kElementwiseBlock;
      if (block < own) break;
      block -= own;
    }
    const std::int64_t lo = block * kElementwiseBlock;
    const std::int64_t left = group[tensor].count() - lo;
    f(tensor, lo, left < kElementwiseBlock ? left : kElementwiseBlock);
  });
}
