#include "lamina/kernels/cpu/device.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "lamina/core/thread_pool.hpp"
#include "lamina/kernels/cpu/isa.hpp"
#include "lamina/kernels/cpu/table.hpp"

namespace lamina {

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

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

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(std::shared_ptr<Executor> executor) : executor_(std::move(executor)) {}

  std::string_view kind() const noexcept override { return "cpu"; }
  bool host_accessible() const noexcept override { return true; }
  Ref<Queue> make_queue() override { return make_ref<HostQueue>(); }
  Executor& executor() noexcept override { return *executor_; }

  void* allocate(std::size_t bytes) override {
    if (bytes < kHugePage) return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    // Mapped one huge page longer than needed, so that the block can start on a huge page.
    const std::size_t mapped = mapped_size(bytes);
    void* base = ::mmap(nullptr, mapped + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) return nullptr;
    const auto address = reinterpret_cast<std::uintptr_t>(base);
    const std::uintptr_t aligned = (address + kHugePage - 1) / kHugePage * kHugePage;
    if (aligned > address) ::munmap(base, aligned - address);
    const std::size_t tail = address + kHugePage - aligned;
    if (tail > 0) ::munmap(reinterpret_cast<void*>(aligned + mapped), tail);
    ::madvise(reinterpret_cast<void*>(aligned), mapped, MADV_HUGEPAGE);  // a hint; refusal changes nothing
    return reinterpret_cast<void*>(aligned);
  }
  void release(void* data, std::size_t bytes) noexcept override {
    if (bytes < kHugePage) {
      std::free(data);
    } else {
      ::munmap(data, mapped_size(bytes));
    }
  }

 private:
  static std::size_t mapped_size(std::size_t bytes) { return (bytes + kHugePage - 1) / kHugePage * kHugePage; }
  std::shared_ptr<Executor> executor_;
};

}  // namespace

Device cpu_device(CpuOptions options) {
  if (options.threads < 0) fail<ValueError>("cpu device", "{} threads; allowed: 0 (all) or more", options.threads);
  if (options.memory_limit < 0) fail<ValueError>("cpu device", "memory limit of {} bytes", options.memory_limit);
  if (!options.executor) {
    options.executor = std::make_shared<ThreadPool>(options.threads > 0 ? options.threads : available_cpus());
  }
  if (options.kernels.empty()) {
    if (const char* names = std::getenv("LAMINA_KERNELS"); names != nullptr) options.kernels = names;
  }
  auto table = std::make_shared<KernelTable>(cpu_kernel_table(options.max_isa.value_or(isa_limit())));
  table->prefer(options.kernels);
  MemoryPool::Options pool{options.memory_limit, options.cache_memory, options.poison_memory};
  return Device(make_ref<DeviceState>(std::make_unique<CpuBackend>(std::move(options.executor)), pool,
                                      std::shared_ptr<const KernelTable>(table), options.name));
}

}  // namespace lamina
