#include "lamina/kernels/example/device.hpp"

#include <cstdlib>

#include "lamina/core/thread_pool.hpp"
#include "lamina/kernels/example/queue.hpp"
#include "lamina/kernels/op_list.hpp"
#include "lamina/kernels/reference.hpp"
#include "lamina/kernels/table.hpp"

namespace lamina {

namespace {

class ExampleBackend final : public Backend {
 public:
  explicit ExampleBackend(ExampleOptions options) : options_(std::move(options)) {}

  std::string_view kind() const noexcept override { return "example"; }
  bool host_accessible() const noexcept override { return false; }
  Ref<Queue> make_queue() override { return make_ref<ExampleQueue>(options_, queues_); }
  Executor& executor() noexcept override { return executor_; }

  void* allocate(std::size_t bytes) override { return std::aligned_alloc(64, (bytes + 63) / 64 * 64); }
  void release(void* data, std::size_t) noexcept override {
    std::lock_guard lock(queues_->mutex);
    for (ExampleQueue* queue : queues_->living) queue->drain();
    std::free(data);
  }

 private:
  const ExampleOptions options_;
  const std::shared_ptr<ExampleQueues> queues_ = std::make_shared<ExampleQueues>();
  ThreadPool executor_{1};
};

// An operand whose layout the task owns: the caller's is gone when it runs.
struct OwnedOperands {
  explicit OwnedOperands(Operands from) {
    layouts.reserve(from.size());
    for (const Operand& o : from) {
      layouts.push_back(*o.layout);
      operands.push_back({o.data, &layouts.back(), o.dtype});
    }
  }
  OwnedOperands(OwnedOperands&&) = default;
  OwnedOperands(const OwnedOperands& other) : OwnedOperands(Operands(other.operands)) {}

  std::vector<Layout> layouts;
  std::vector<Operand> operands;
};

template <Op O>
void launch_reference(const Launch<typename O::Attrs>& launch) {
  auto& queue = static_cast<ExampleQueue&>(launch.queue);
  queue.submit([attrs = launch.attrs, in = OwnedOperands(launch.in), out = OwnedOperands(launch.out)] {
    run_reference(&reference_erased<O>, &attrs, in.operands, out.operands);
  });
}

template <Op O>
Support supports_everything(const typename O::Attrs&, Operands, Operands) {
  return Support::yes();
}

template <Op O>
const Variant& example_variant() {
  static const std::string name = fmt::format("{}.example.reference", O::name);
  static const Variant v = variant<O, supports_everything<O>, launch_reference<O>>(name, Isa::baseline, false);
  return v;
}

KernelTable example_kernel_table() {
  KernelTable table;
  auto add = [&](int op, const Variant& v) {
    table.entry(op).all.push_back(&v);
    table.entry(op).usable.push_back(&v);
  };
#define LAMINA_ADD(O) add(OpId<O>::value, example_variant<O>());
  LAMINA_FOR_EACH_OP(LAMINA_ADD)
#undef LAMINA_ADD
  return table;
}

}  // namespace

Device example_device(ExampleOptions options) {
  if (options.max_delay_us < 0) fail<ValueError>("example device", "delay of {} us", options.max_delay_us);
  if (options.memory_limit < 0) fail<ValueError>("example device", "memory limit of {} bytes", options.memory_limit);
  const MemoryPool::Options pool{.limit_bytes = options.memory_limit};
  const std::string name = options.name;
  return Device(make_ref<DeviceState>(std::make_unique<ExampleBackend>(std::move(options)), pool,
                                      std::make_shared<const KernelTable>(example_kernel_table()), name));
}

}  // namespace lamina
