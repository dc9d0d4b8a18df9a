#include "tests/ops/memory.hpp"

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <new>

namespace lamina::harness {

Banded::Banded(const Device& device, const Array& array, int band)
    : meta_(array.meta), bytes_(array.bytes.size()), band_(std::byte(band)) {
  Array image({{static_cast<std::int64_t>(bytes_ + 2 * kBand)}, DType::u8}, band);
  if (bytes_ > 0) std::memcpy(image.bytes.data() + kBand, array.bytes.data(), bytes_);
  memory_ = tensor_of(device, image);
}

std::optional<std::int64_t> Banded::stray_write() const {
  const Array image = array_of(memory_);
  for (std::size_t i = 0; i < image.bytes.size(); ++i) {
    if (i == kBand) i += bytes_;
    if (image.bytes[i] != band_) return static_cast<std::int64_t>(i) - static_cast<std::int64_t>(kBand);
  }
  return {};
}

Array Banded::contents() const {
  const Array image = array_of(memory_);
  Array array(meta_);
  if (bytes_ > 0) std::memcpy(array.bytes.data(), image.bytes.data() + kBand, bytes_);
  return array;
}

Paged::Paged(const Array& array, At at) : meta_(array.meta), bytes_(array.bytes.size()) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t inner = std::max((bytes_ + page - 1) / page * page, page);
  mapped_ = inner + 2 * page;
  void* base = ::mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED || ::mprotect(static_cast<std::byte*>(base) + page, inner, PROT_READ | PROT_WRITE) != 0) {
    throw std::bad_alloc();
  }
  base_ = static_cast<std::byte*>(base);
  std::memset(base_ + page, 0xFF, inner);
  data_ = base_ + page + (at == At::front ? 0 : inner - bytes_);
  if (bytes_ > 0) std::memcpy(data_, array.bytes.data(), bytes_);
}

Paged::~Paged() { ::munmap(base_, mapped_); }

Array Paged::contents() const {
  Array array(meta_);
  if (bytes_ > 0) std::memcpy(array.bytes.data(), data_, bytes_);
  return array;
}

namespace {
sigjmp_buf resume;
volatile sig_atomic_t armed = 0;

void on_fault(int signal) {
  if (armed != 0) siglongjmp(resume, 1);
  ::signal(signal, SIG_DFL);  // not ours: returning runs into it again
}
}  // namespace

bool faults(void (*f)(void*), void* argument) {
  struct sigaction ours {
  }, old_segv{}, old_bus{};
  ours.sa_handler = on_fault;
  ours.sa_flags = SA_NODEFER;
  sigemptyset(&ours.sa_mask);
  ::sigaction(SIGSEGV, &ours, &old_segv);
  ::sigaction(SIGBUS, &ours, &old_bus);
  auto restore = [&] {
    armed = 0;
    ::sigaction(SIGSEGV, &old_segv, nullptr);
    ::sigaction(SIGBUS, &old_bus, nullptr);
  };
  if (sigsetjmp(resume, 1) != 0) {
    restore();
    return true;
  }
  armed = 1;
  try {
    f(argument);
  } catch (...) {
    restore();
    throw;
  }
  restore();
  return false;
}

}  // namespace lamina::harness
