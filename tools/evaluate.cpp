#include "lamina/tools/evaluate.hpp"

#include <algorithm>
#include <numeric>

#include "lamina/kernels/op_list.hpp"
#include "lamina/tools/stop_signal.hpp"

namespace lamina::tools {

Evaluation evaluate(const nn::Module& model, const Dataset& dataset, const Device& device, DType dtype,
                    std::int64_t batch) {
  Evaluation total;
  double loss_sum = 0;
  std::int64_t right = 0;
  for (std::int64_t at = 0; at < dataset.size() && StopSignal::received() == 0; at += batch) {
    std::vector<std::int64_t> indices(static_cast<std::size_t>(std::min(batch, dataset.size() - at)));
    std::iota(indices.begin(), indices.end(), at);
    const Batch data = dataset.read(device, indices);
    Tape tape = Tape::evaluation();
    Tensor inputs = data.inputs;
    if (is_floating(inputs.dtype()) && inputs.dtype() != dtype) inputs = cast(inputs, dtype);
    const Tensor logits = model(tape.constant(inputs)).value();
    const auto loss = cross_entropy_with_count(logits, data.labels, {.mean = false});
    loss_sum += loss.loss.item();
    const auto labels = to_vector<std::int64_t>(data.labels);
    const auto values = to_vector<float>(logits);
    const auto classes = static_cast<std::size_t>(dataset.classes());
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const auto row = values.begin() + static_cast<std::ptrdiff_t>(i * classes);
      right += std::max_element(row, row + static_cast<std::ptrdiff_t>(classes)) - row == labels[i] ? 1 : 0;
    }
    total.labels += static_cast<std::int64_t>(labels.size());
  }
  const double n = static_cast<double>(std::max<std::int64_t>(total.labels, 1));
  total.loss = loss_sum / n;
  total.accuracy = static_cast<double>(right) / n;
  return total;
}

}  // namespace lamina::tools
