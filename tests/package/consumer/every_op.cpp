// Every op of ops.def runs: nothing registers itself by a static object that a linker may drop.
#include <cstdio>
#include <vector>

#include "lamina/kernels/cpu/device.hpp"
#include "lamina/kernels/op_info.hpp"
#include "lamina/kernels/op_list.hpp"
#include "lamina/kernels/run.hpp"

namespace {

lamina::Tensor filled(const lamina::Device& device, const lamina::SampleOperand& operand) {
  auto tensor = lamina::Tensor::zeros(device, operand.shape, operand.dtype);
  if (operand.dtype == lamina::DType::f32) {
    for (float& x : lamina::host_mut<float>(tensor)) x = 0.5f;
  }
  return tensor;
}

}  // namespace

int main() {
  const lamina::Device device = lamina::cpu_device({.threads = 2});
  int listed = 0;
#define COUNT(O)                        \
  static_assert(lamina::Op<lamina::O>); \
  listed += lamina::record_of<lamina::O>.id >= 0;
  LAMINA_FOR_EACH_OP(COUNT)
  int ran = 0;
  for (const lamina::OpInfo& op : lamina::all_ops()) {
    const auto& sample = op.samples.front();
    std::vector<lamina::Tensor> inputs;
    std::vector<const lamina::Tensor*> in;
    for (const auto& operand : sample.inputs) inputs.push_back(filled(device, operand));
    for (const auto& input : inputs) in.push_back(&input);
    const auto out = lamina::run_on(device, *op.record, sample.attrs.get(), in);
    std::printf("%.*s: %zu in, %zu out\n", static_cast<int>(op.record->name.size()), op.record->name.data(), in.size(),
                out.size());
    ++ran;
  }
  return ran == listed && ran > 0 ? 0 : 1;
}
