#include "lamina/dist/comm/buffer.hpp"

#include "lamina/core/error.hpp"

namespace lamina::comm {

namespace {

template <class Tensors>
void check_dtypes(const Tensors& tensors) {
  for (std::size_t i = 1; i < tensors.size(); ++i) {
    if (tensors[i].dtype() != tensors[0].dtype()) {
      fail<DTypeError>("buffer", "tensor {} is {}, the first {}", i, name_of(tensors[i].dtype()),
                       name_of(tensors[0].dtype()));
    }
  }
}

}  // namespace

Buffer buffer_of(std::span<Tensor> tensors) {
  check_dtypes(tensors);
  Buffer buffer(nullptr, 0, tensors.empty() ? DType::f32 : tensors[0].dtype());
  for (Tensor& t : tensors) {
    buffer.add(visit(t.dtype(), [&]<class T>() { return reinterpret_cast<std::byte*>(host_mut<T>(t).data()); }),
               t.count());
  }
  for (const Tensor& t : tensors) buffer.keep(t);  // from now on nobody else writes them
  return buffer;
}

ConstBuffer const_buffer_of(std::span<const Tensor> tensors) {
  check_dtypes(tensors);
  ConstBuffer buffer(nullptr, 0, tensors.empty() ? DType::f32 : tensors[0].dtype());
  for (const Tensor& t : tensors) {
    buffer.add(visit(t.dtype(), [&]<class T>() { return reinterpret_cast<const std::byte*>(host<T>(t).data()); }),
               t.count());
    buffer.keep(t);
  }
  return buffer;
}

}  // namespace lamina::comm
