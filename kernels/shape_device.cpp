#include "lamina/kernels/shape_device.hpp"

#include "lamina/core/thread_pool.hpp"
#include "lamina/kernels/table.hpp"

namespace lamina {

namespace {

class NoQueue final : public Queue {
 public:
  bool synchronous() const noexcept override { return true; }
  Event record() override { return {}; }
  void wait_for(const Event&) override {}
  bool passed(std::uint64_t) const override { return true; }
  void wait(std::uint64_t) override {}
  void copy_in(void*, const void*, std::size_t) override {}
  void copy_out(void*, const void*, std::size_t) override {}
  void copy(void*, const void*, std::size_t) override {}
  void fill_zero(void*, std::size_t) override {}
};

class ShapeBackend final : public Backend {
 public:
  std::string_view kind() const noexcept override { return "shape"; }
  bool host_accessible() const noexcept override { return false; }
  bool has_storage() const noexcept override { return false; }
  Ref<Queue> make_queue() override { return make_ref<NoQueue>(); }
  Executor& executor() noexcept override { return executor_; }
  void* allocate(std::size_t) override { return nullptr; }
  void release(void*, std::size_t) noexcept override {}

 private:
  ThreadPool executor_{1};
};

}  // namespace

Device shape_device() {
  return Device(make_ref<DeviceState>(std::make_unique<ShapeBackend>(), MemoryPool::Options{},
                                      std::make_shared<const KernelTable>(), "shape"));
}

}  // namespace lamina
