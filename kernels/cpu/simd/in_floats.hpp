// Kernels written for f32, on operands stored as bf16 or f16: these are converted to floats as a whole, and the outputs
// back, which is where they are rounded; operands that are f32 beside them stay where they are. Included by vector code
// after simd.hpp (no include guard); the kernel file has included cpu/reduce.hpp.

template <class From, class To>
void convert_all(const From* from, To* to, std::int64_t count, Executor& executor) {
  run_blocks(executor, ceil_div(count, kReduceBlock), [&](std::int64_t block) {
    std::int64_t i = block * kReduceBlock;
    const std::int64_t end = count - i < kReduceBlock ? count : i + kReduceBlock;
    for (; i + kLanes <= end; i += kLanes) Lanes<To>::store(to + i, Lanes<From>::load(from + i));
    if (i < end) Lanes<To>::store(to + i, Lanes<From>::load(from + i, end - i), end - i);
  });
}

/// kernel(launch), whose floating operands are stored as T, or as f32, and dense.
template <class T, class Attrs>
void in_floats(const Launch<Attrs>& launch, void (*kernel)(const Launch<Attrs>&)) {
  if constexpr (sizeof(T) == sizeof(float)) {
    kernel(launch);
  } else {
    constexpr std::size_t kMost = 12;  // operands of an op
    const std::size_t inputs = launch.in.size(), count = inputs + launch.out.size();
    Operand operands[kMost];
    std::int64_t floats = 0;
    for (std::size_t i = 0; i < count; ++i) {
      operands[i] = i < inputs ? launch.in[i] : launch.out[i - inputs];
      if (operands[i].dtype == dtype_of<T>) floats += ceil_div(operands[i].count(), 16) * 16;
    }
    const Scratch scratch = Scratch::of_floats(launch.pool, floats);
    float* next = scratch.floats();
    for (std::size_t i = 0; i < count; ++i) {
      if (operands[i].dtype != dtype_of<T>) continue;
      operands[i].data = reinterpret_cast<std::byte*>(next);
      operands[i].dtype = DType::f32;
      next += ceil_div(operands[i].count(), 16) * 16;
    }
    const Operands in(operands, inputs), out(operands + inputs, count - inputs);
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (launch.in[i].dtype != dtype_of<T>) continue;
      convert_all(launch.in[i].template as<const T>(), in[i].as<float>(), in[i].count(), launch.executor);
    }
    kernel({launch.attrs, in, out, launch.executor, launch.queue, launch.pool});
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (launch.out[i].dtype != dtype_of<T>) continue;
      convert_all(out[i].as<const float>(), launch.out[i].template as<T>(), out[i].count(), launch.executor);
    }
  }
}
