// Dispatch: from an op record and tensors to a kernel launch. run() is what every op call ends in.
#pragma once

#include "lamina/kernels/record.hpp"
#include "lamina/kernels/variant.hpp"

namespace lamina {

using TensorRefs = std::span<const Tensor* const>;

/// Infers, allocates the outputs on the queue of the first operand's handle, picks the first variant that supports the
/// problem and launches it. Inputs are never written.
/// Throws what infer throws; DeviceError for operands of different devices; MissingKernel naming each variant's
/// reason; OutOfMemory. On synchronous devices also what the kernel throws; else that surfaces at the wait.
Tensors run(const OpRecord& op, const void* attrs, TensorRefs in);

/// As run(), into tensors given. Each must have the inferred shape and dtype, be dense and the sole owner of its
/// storage, unless it is exactly one of the inputs of an op made for updating in place (`in_place`): then the kernel
/// reads and writes the same elements and the handle in `in` counts as one more owner. Throws AliasError, ShapeError.
void run_into(const OpRecord& op, const void* attrs, TensorRefs in, std::span<Tensor> out, bool in_place = false);

/// As run(), with one variant, which must support the problem. For tests, benchmarks and kernel research.
Tensors run_variant(const OpRecord& op, const Variant& variant, const void* attrs, TensorRefs in);

/// Ops on a device that only computes shapes need a device even without operands.
Tensors run_on(const Device& device, const OpRecord& op, const void* attrs, TensorRefs in);

}  // namespace lamina
