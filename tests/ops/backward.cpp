#include <algorithm>
#include <limits>

#include "lamina/core/rng.hpp"
#include "tests/ops/arrange.hpp"
#include "tests/ops/gradient.hpp"

namespace lamina::harness {

Backward::Backward(const OpInfo& op, const Device& device, const Problem& problem, bool strided)
    : op_(op), problem_(problem), device_(device), strided_(strided) {
  std::vector<const Tensor*> refs;
  for (const Array& a : problem.in) {
    in_.push_back(strided ? arrange(device, a, Arrangement::reversed) : tensor_of(device, a));
  }
  for (const Tensor& t : in_) refs.push_back(&t);
  out_ = refs.empty() ? run_on(device, *op.record, problem.attrs, refs) : run(*op.record, problem.attrs, refs);
}

std::uint64_t Backward::floating_inputs() const {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < in_.size(); ++i) bits |= is_floating(in_[i].dtype()) ? std::uint64_t{1} << i : 0;
  return bits;
}

std::vector<std::size_t> Backward::floating_outputs() const {
  std::vector<std::size_t> outputs;
  for (std::size_t o = 0; o < out_.size(); ++o) {
    if (is_floating(out_[o].dtype())) outputs.push_back(o);
  }
  return outputs;
}

std::vector<double> Backward::cotangent_values(const OpInfo& op, std::size_t output, std::int64_t count) {
  const Rng rng(seed(), hash_bytes(std::as_bytes(std::span(op.record->name))), 1000 + output);
  std::vector<double> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<double>(static_cast<float>(BFloat16(static_cast<float>(rng.normal(0, i)))));
  }
  return values;
}

std::vector<Tensor> Backward::cotangents(std::uint64_t which) const {
  std::vector<Tensor> cotangents(out_.size());
  for (std::size_t o = 0; o < out_.size(); ++o) {
    if (!is_floating(out_[o].dtype()) || ((which >> o) & 1u) == 0) continue;
    const Array values = array_of(out_[o].meta(), std::span<const double>(cotangent_values(op_, o, out_[o].count())));
    cotangents[o] = strided_ ? arrange(device_, values, Arrangement::reversed) : tensor_of(device_, values);
  }
  return cotangents;
}

Keep Backward::kept(std::uint64_t needs) const {
  const Saves& saves = op_.record->saves;
  Keep keep;
  for (std::size_t i = 0; i < in_.size(); ++i) {
    if (((needs >> i) & 1u) != 0) keep = keep | saves.operand(i);
  }
  const auto first = [](std::size_t n) { return n < 32 ? (1u << n) - 1 : ~0u; };
  return {keep.inputs & first(in_.size()), keep.outputs & first(out_.size())};
}

namespace {

Tensor spoil(const Device& device, const Tensor& tensor) {
  const Array array = array_of(tensor);
  if (is_floating(array.meta.dtype)) {
    const std::vector<double> nan(static_cast<std::size_t>(array.count()), std::numeric_limits<double>::quiet_NaN());
    return tensor_of(device, array_of(array.meta, std::span<const double>(nan)));
  }
  std::vector<std::int64_t> values = index_values(array);
  std::reverse(values.begin(), values.end());
  if (values == index_values(array)) std::fill(values.begin(), values.end(), 0);  // a count
  return tensor_of(device, array_of(array.meta, std::span<const std::int64_t>(values)));
}

}  // namespace

Tensors Backward::vjp(std::span<const Tensor> cotangents, std::uint64_t needs, Keep spoiled) const {
  const Keep keep = kept(needs);
  std::vector<Tensor> inputs(in_.size()), outputs(out_.size());
  std::vector<Meta> input_metas, output_metas;
  for (std::size_t i = 0; i < in_.size(); ++i) {
    input_metas.push_back(in_[i].meta());
    if ((keep.inputs >> i & 1u) != 0) inputs[i] = (spoiled.inputs >> i & 1u) != 0 ? spoil(device_, in_[i]) : in_[i];
  }
  for (std::size_t o = 0; o < out_.size(); ++o) {
    output_metas.push_back(out_[o].meta());
    if ((keep.outputs >> o & 1u) != 0)
      outputs[o] = (spoiled.outputs >> o & 1u) != 0 ? spoil(device_, out_[o]) : out_[o];
  }
  const Saved saved(inputs, outputs, input_metas, output_metas);
  Tensors gradients = op_.record->vjp(problem_.attrs, saved, cotangents, Needs(needs));
  if (gradients.size() != in_.size()) {
    fail<Mismatch>("vjp", "{} gradients for {} operands", gradients.size(), in_.size());
  }
  for (std::size_t i = 0; i < in_.size(); ++i) {
    if (!gradients[i].defined()) continue;
    // Ops of one operand are only called when its gradient is needed.
    if (((needs >> i) & 1u) == 0) fail<Mismatch>("vjp", "the gradient of operand {} is given, though not needed", i);
    if (!(gradients[i].meta() == in_[i].meta())) {
      fail<Mismatch>("vjp", "the gradient of operand {} is {}, the operand {}", i, to_string(gradients[i]),
                     to_string(in_[i]));
    }
  }
  return gradients;
}

Reach Backward::reach() const {
  Reach reach;
  std::string last;
  for (const std::size_t o : floating_outputs()) {
    const std::vector<Tensor> alone = cotangents(std::uint64_t{1} << o);
    std::uint64_t refused = 0;
    for (std::size_t i = 0; i < in_.size(); ++i) {
      const std::uint64_t bit = std::uint64_t{1} << i;
      if ((floating_inputs() & bit) == 0) continue;
      try {
        vjp(alone, bit);
        reach.outputs |= std::uint64_t{1} << o;
        reach.operands |= bit;
      } catch (const TapeError& e) {
        refused |= bit;
        last = e.what();
      }
    }
    if (refused == 0) continue;
    if (refused != floating_inputs()) {
      reach.faults.push_back(fmt::format("the cotangent of output {} is taken for some operands only: {}", o, last));
    } else if (last.find(fmt::format("output {}", o)) == std::string::npos) {
      reach.faults.push_back(fmt::format("the cotangent of output {} is refused in other words: {}", o, last));
    }
  }
  for (std::size_t i = 0; i < in_.size(); ++i) {
    const std::uint64_t bit = std::uint64_t{1} << i;
    if ((floating_inputs() & ~reach.operands & bit) == 0 || floating_outputs().empty()) continue;
    reach.faults.push_back(fmt::format("operand {} has a gradient from no output: {}", i, last));
  }
  return reach;
}

}  // namespace lamina::harness
