#include "lamina/dist/comm/delivery.hpp"

#include <cstring>

#include "lamina/dist/comm/reduce.hpp"

namespace lamina::comm {

std::int64_t Delivery::left() const noexcept {
  return step_->count * static_cast<std::int64_t>(to_->element()) - done_;
}

std::span<std::byte> Delivery::writable() noexcept {
  if (step_->kind != Step::Kind::receive) return {};
  const auto size = static_cast<std::int64_t>(to_->element());
  const std::int64_t element = done_ / size, inside = done_ % size;
  return to_->run(step_->to_at + element, step_->count - element).subspan(static_cast<std::size_t>(inside));
}

void Delivery::take(std::span<const std::byte> bytes) {
  if (step_->kind == Step::Kind::receive) {
    while (!bytes.empty()) {
      const std::span<std::byte> to = writable();
      const std::size_t n = std::min(to.size(), bytes.size());
      std::memcpy(to.data(), bytes.data(), n);
      wrote(n);
      bytes = bytes.subspan(n);
    }
    return;
  }
  const std::size_t size = to_->element();
  const std::size_t there = static_cast<std::size_t>(done_) % size;
  if (there != 0) {
    const std::size_t n = std::min(size - there, bytes.size());
    std::memcpy(part_.data() + there, bytes.data(), n);
    bytes = bytes.subspan(n);
    if (there + n < size) {
      done_ += static_cast<std::int64_t>(n);
      return;
    }
    done_ -= static_cast<std::int64_t>(there);
    reduce_elements(part_.data(), 1);
  }
  const std::size_t whole = bytes.size() / size;
  if (whole > 0) reduce_elements(bytes.data(), static_cast<std::int64_t>(whole));
  const std::span<const std::byte> rest = bytes.subspan(whole * size);
  std::copy(rest.begin(), rest.end(), part_.begin());
  done_ += static_cast<std::int64_t>(rest.size());
}

void Delivery::reduce_elements(const std::byte* theirs, std::int64_t count) {
  const auto size = static_cast<std::int64_t>(to_->element());
  // A cache's worth at a time where there is a second pass.
  const std::int64_t most = step_->last && by_ != 1 ? 8192 : count;
  while (count > 0) {
    const std::int64_t at = done_ / size;
    const std::span<std::byte> to = to_->run(step_->to_at + at, std::min(count, most));
    const std::span<const std::byte> own = own_->run(step_->own_at + at, static_cast<std::int64_t>(to.size()) / size);
    const std::int64_t n = static_cast<std::int64_t>(own.size()) / size;
    const std::byte* a = step_->theirs_first ? theirs : own.data();
    const std::byte* b = step_->theirs_first ? own.data() : theirs;
    reduce(to_->dtype(), reduction_, to.data(), a, b, n);
    if (step_->last && by_ != 1) divide(to_->dtype(), to.data(), n, by_);
    theirs += n * size;
    done_ += n * size;
    count -= n;
  }
}

}  // namespace lamina::comm
