// The smallest device there is: the host's memory and work done at once by the caller. For tests of the rooms that
// may not know the kernels.
#pragma once

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>

#include "lamina/core/device.hpp"

namespace lamina::test {

class HostQueue final : public Queue {
 public:
  bool synchronous() const noexcept override { return true; }
  Event record() override { return {}; }
  void wait_for(const Event& event) override { event.wait(); }
  bool passed(std::uint64_t) const override { return true; }
  void wait(std::uint64_t) override {}
  void copy_in(void* device, const void* host, std::size_t bytes) override { std::memcpy(device, host, bytes); }
  void copy_out(void* host, const void* device, std::size_t bytes) override { std::memcpy(host, device, bytes); }
  void copy(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void fill_zero(void* device, std::size_t bytes) override { std::memset(device, 0, bytes); }
};

class HostBackend final : public Backend {
 public:
  struct Options {
    bool host_accessible = true;  ///< false: says that the host cannot reach it, as an accelerator would
    bool storage = true;          ///< false: shapes only
  };
  explicit HostBackend(Options options) : options_(options) {}

  void* allocate(std::size_t bytes) override { return std::aligned_alloc(64, (bytes + 63) / 64 * 64); }
  void release(void* data, std::size_t) noexcept override { std::free(data); }
  std::string_view kind() const noexcept override { return "host"; }
  bool host_accessible() const noexcept override { return options_.host_accessible; }
  bool has_storage() const noexcept override { return options_.storage; }
  Ref<Queue> make_queue() override { return make_ref<HostQueue>(); }
  Executor& executor() noexcept override { return executor_; }

 private:
  struct Serial final : Executor {
    int width() const noexcept override { return 1; }
    void run(std::int64_t count, BlockFunction block) override {
      for (std::int64_t i = 0; i < count; ++i) block(i);
    }
  };
  Options options_;
  Serial executor_;
};

/// A device of its own. The pool poisons blocks, so that elements nobody wrote are noticed.
inline Device host_device(HostBackend::Options options = {}) {
  return Device(make_ref<DeviceState>(std::make_unique<HostBackend>(options),
                                      MemoryPool::Options{.limit_bytes = 0, .cache = true, .poison = true}, nullptr,
                                      "host"));
}

}  // namespace lamina::test
