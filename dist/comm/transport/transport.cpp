#include "lamina/dist/comm/transport/transport.hpp"

namespace lamina::comm {

std::span<const std::byte> Outgoing::next() const noexcept {
  return piece_ < pieces_.size() ? pieces_[piece_].subspan(at_) : std::span<const std::byte>();
}

void Outgoing::advance(std::size_t bytes) noexcept {
  done_ += static_cast<std::int64_t>(bytes);
  at_ += bytes;
  while (piece_ < pieces_.size() && at_ >= pieces_[piece_].size()) {
    at_ -= pieces_[piece_].size();
    ++piece_;
  }
}

}  // namespace lamina::comm
