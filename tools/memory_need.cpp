#include "lamina/tools/memory_need.hpp"

#include "lamina/core/available_memory.hpp"
#include "lamina/kernels/shape_device.hpp"
#include "lamina/tools/table.hpp"

namespace lamina::tools {

namespace {

double bytes_of(const Shape& shape, DType dtype) {
  return static_cast<double>(shape.count()) * static_cast<double>(size_of(dtype));
}

double bytes_of(const std::vector<nn::Module::NamedParam>& params) {
  double bytes = 0;
  for (const nn::Module::NamedParam& p : params) bytes += bytes_of(p.param->meta().shape, p.param->meta().dtype);
  return bytes;
}

}  // namespace

MemoryNeed memory_need(const RunOptions& options, const Dataset& dataset, bool training) {
  const auto model = open_model(options, dataset, shape_device());
  MemoryNeed need;
  const double parameters = bytes_of(model->parameters());
  need.weights = parameters + bytes_of(model->buffers());
  const auto examples = static_cast<double>(std::min(options.batch, dataset.size()));
  need.batch = examples * (bytes_of(dataset.input().shape, dataset.input().dtype) +
                           bytes_of(dataset.label().shape, dataset.label().dtype));
  if (!training) return need;
  need.gradients = parameters;
  const auto optimizer = nn::make_optimizer(model->parameters(), options.optimizer);
  for (const nn::Optimizer::NamedTensor& state : optimizer->state()) {
    need.optimizer += bytes_of(state.tensor->shape(), state.tensor->dtype());
  }
  return need;
}

void require_memory(const RunOptions& options, const Dataset& dataset, bool training) {
  const MemoryNeed need = memory_need(options, dataset, training);
  const auto available = static_cast<double>(available_memory());
  if (need.total() <= available) return;
  std::string parts = fmt::format("weights {:.0f}", need.weights);
  if (training)
    parts += fmt::format(", gradients {:.0f}, {} {:.0f}", need.gradients, options.optimizer.name, need.optimizer);
  fail<OutOfMemory>("memory", "{} on {} needs at least {:.0f} bytes ({}, a batch {:.0f}), {}; available are {:.0f}, {}",
                    options.model, options.data, need.total(), parts, need.batch, human_bytes(need.total()), available,
                    human_bytes(available));
}

}  // namespace lamina::tools
