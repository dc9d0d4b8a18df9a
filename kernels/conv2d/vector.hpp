// Direct convolution. A unit of work copies the part of the source it reads, padded and with strides undone (see
// TapAxis), and then walks it with register tiles that hold their sums over all channels and taps. There are two kinds
// of tile: lanes of output pixels (few channels, long rows), and lanes of output channels (many channels, any rows).
#include "lamina/kernels/cpu/simd/gemm.hpp"
#include "lamina/kernels/cpu/simd/in_floats.hpp"
#include "lamina/kernels/cpu/simd/shuffle.hpp"

// In the order in which they need each other.
// clang-format off
#include "lamina/kernels/conv2d/source_vector.hpp"
#include "lamina/kernels/conv2d/tile_vector.hpp"
#include "lamina/kernels/conv2d/plan_vector.hpp"
#include "lamina/kernels/conv2d/output_vector.hpp"
#include "lamina/kernels/conv2d/tap_conv_vector.hpp"
#include "lamina/kernels/conv2d/weight_tile_vector.hpp"
#include "lamina/kernels/conv2d/weight_grad_vector.hpp"
#include "lamina/kernels/conv2d/pointwise_vector.hpp"
// clang-format on

void conv2d(const Launch<Conv2d::Attrs>& launch) { plan_conv2d(launch, run_tap_conv); }
void conv2d_input_grad(const Launch<Conv2dInputGrad::Attrs>& launch) { plan_conv2d_input_grad(launch, run_tap_conv); }
void conv2d_weight_grad(const Launch<Conv2dWeightGrad::Attrs>& launch) {
  plan_conv2d_weight_grad(launch, run_tap_weight_grad);
}

// Of any storage.
template <class T>
void conv2d_in(const Launch<Conv2d::Attrs>& launch) {
  in_floats<T>(launch, conv2d);
}
template <class T>
void conv2d_pointwise_in(const Launch<Conv2d::Attrs>& launch) {
  in_floats<T>(launch, conv2d_pointwise);
}
template <class T>
void conv2d_input_grad_in(const Launch<Conv2dInputGrad::Attrs>& launch) {
  in_floats<T>(launch, conv2d_input_grad);
}
template <class T>
void conv2d_input_grad_pointwise_in(const Launch<Conv2dInputGrad::Attrs>& launch) {
  in_floats<T>(launch, conv2d_input_grad_pointwise);
}
template <class T>
void conv2d_weight_grad_in(const Launch<Conv2dWeightGrad::Attrs>& launch) {
  in_floats<T>(launch, conv2d_weight_grad);
}
template <class T>
void conv2d_weight_grad_pointwise_in(const Launch<Conv2dWeightGrad::Attrs>& launch) {
  in_floats<T>(launch, conv2d_weight_grad_pointwise);
}
