#include "lamina/kernels/reference.hpp"

#include <cmath>

namespace lamina {

thread_local constinit std::int64_t CountingReal::flops = 0;

CountingReal exp(CountingReal a) { return CountingReal::counted(std::exp(a.value)); }
CountingReal log(CountingReal a) { return CountingReal::counted(std::log(a.value)); }
CountingReal tanh(CountingReal a) { return CountingReal::counted(std::tanh(a.value)); }
CountingReal erf(CountingReal a) { return CountingReal::counted(std::erf(a.value)); }
CountingReal sqrt(CountingReal a) { return CountingReal::counted(std::sqrt(a.value)); }
CountingReal abs(CountingReal a) { return {std::abs(a.value)}; }

namespace {

// Visits the elements of a layout in row-major order: f(element offset).
template <class F>
void for_each_offset(const Layout& layout, F&& f) {
  const int rank = layout.shape.rank();
  const std::int64_t count = layout.shape.count();
  std::array<std::int64_t, kMaxRank> index{};
  std::int64_t at = 0;
  for (std::int64_t n = 0; n < count; ++n) {
    f(at);
    for (int i = rank - 1; i >= 0; --i) {
      const auto d = static_cast<std::size_t>(i);
      at += layout.strides[d];
      if (++index[d] < layout.shape[i]) break;
      at -= layout.strides[d] * layout.shape[i];
      index[d] = 0;
    }
  }
}

template <class T>
inline constexpr bool is_storage_float = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

struct HostArray {
  std::vector<double> real;
  std::vector<std::int64_t> index;
};

}  // namespace

void run_reference(ReferenceFunction reference, const void* attrs, Operands in, Operands out) {
  std::vector<HostArray> in_data(in.size()), out_data(out.size());
  std::vector<RefIn<double>> ins;
  std::vector<RefOut<double>> outs;
  for (std::size_t i = 0; i < in.size(); ++i) {
    HostArray& data = in_data[i];
    visit(in[i].dtype, [&]<class T>() {
      const T* source = in[i].as<T>();
      // The operand's address has the layout's offset applied already.
      for_each_offset(*in[i].layout, [&](std::int64_t at) {
        if constexpr (is_storage_float<T>) {
          data.real.push_back(static_cast<double>(static_cast<float>(source[at])));
        } else if constexpr (std::is_floating_point_v<T>) {
          data.real.push_back(static_cast<double>(source[at]));
        } else {
          data.index.push_back(static_cast<std::int64_t>(source[at]));
        }
      });
    });
    const bool real = is_floating(in[i].dtype);
    ins.push_back({in[i].shape(), real ? data.real.data() : nullptr, real ? nullptr : data.index.data()});
  }
  for (std::size_t o = 0; o < out.size(); ++o) {
    const bool real = is_floating(out[o].dtype);
    const auto count = static_cast<std::size_t>(out[o].count());
    if (real) {
      out_data[o].real.resize(count);
    } else {
      out_data[o].index.resize(count);
    }
    outs.push_back(
        {out[o].shape(), real ? out_data[o].real.data() : nullptr, real ? nullptr : out_data[o].index.data()});
  }
  reference(attrs, ins, outs);
  for (std::size_t o = 0; o < out.size(); ++o) {
    visit(out[o].dtype, [&]<class T>() {
      T* target = out[o].as<T>();
      for (std::size_t n = 0; n < static_cast<std::size_t>(out[o].count()); ++n) {
        if constexpr (is_storage_float<T>) {
          target[n] = T(static_cast<float>(out_data[o].real[n]));
        } else if constexpr (std::is_floating_point_v<T>) {
          target[n] = static_cast<T>(out_data[o].real[n]);
        } else {
          target[n] = static_cast<T>(out_data[o].index[n]);
        }
      }
    });
  }
}

}  // namespace lamina
