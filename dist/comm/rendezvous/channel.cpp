#include "lamina/dist/comm/rendezvous/channel.hpp"

#include <algorithm>
#include <cstring>

#include "lamina/core/io/bytes.hpp"

namespace lamina::comm {

namespace {

constexpr std::string_view kMagic = "LMRV";
constexpr std::size_t kHead = 4 + 4 + 4 + 8;  // magic, version, kind, length

template <class T>
T number_at(const std::string& bytes, std::size_t at) {
  return load_little<T>(reinterpret_cast<const std::byte*>(bytes.data()) + at);
}

}  // namespace

std::shared_ptr<const std::string> encode(const Frame& frame) {
  std::byte head[kHead];
  std::memcpy(head, kMagic.data(), kMagic.size());
  store_little(head + 4, frame.version);
  store_little(head + 8, static_cast<std::uint32_t>(frame.kind));
  store_little(head + 12, static_cast<std::uint64_t>(frame.payload.size()));
  auto out = std::make_shared<std::string>();
  out->reserve(kHead + frame.payload.size());
  out->append(reinterpret_cast<const char*>(head), kHead);
  out->append(frame.payload);
  return out;
}

Channel::Read Channel::read(std::uint64_t most) {
  for (;;) {
    const std::size_t magic = std::min(in_.size(), kMagic.size());
    if (std::string_view(in_).substr(0, magic) != kMagic.substr(0, magic)) return Read::garbage;
    std::size_t wanted = kHead;
    if (in_.size() >= kHead) {
      const auto length = number_at<std::uint64_t>(in_, 12);
      if (length > most) return Read::garbage;
      wanted += length;
      if (in_.size() == wanted) {
        frame_ = {static_cast<Frame::Kind>(number_at<std::uint32_t>(in_, 8)), number_at<std::uint32_t>(in_, 4),
                  in_.substr(kHead)};
        in_.clear();
        return Read::frame;
      }
    }
    std::byte piece[std::size_t{1} << 16];
    const Transfer moved = receive_some(socket_, std::span(piece, std::min(sizeof piece, wanted - in_.size())));
    if (moved.gone()) {
      error_ = moved.error;
      return Read::gone;
    }
    if (moved.bytes == 0) return Read::nothing;
    in_.append(reinterpret_cast<const char*>(piece), moved.bytes);
  }
}

void Channel::send(std::shared_ptr<const std::string> frame) { out_.push_back(std::move(frame)); }

bool Channel::flush() {
  while (!out_.empty()) {
    const auto bytes = std::as_bytes(std::span(out_.front()->data(), out_.front()->size())).subspan(sent_);
    const Transfer moved = send_some(socket_, bytes);
    if (moved.gone()) return false;
    if (moved.bytes == 0 && !bytes.empty()) return true;
    sent_ += moved.bytes;
    if (sent_ == out_.front()->size()) {
      out_.pop_front();
      sent_ = 0;
    }
  }
  return true;
}

void Channel::end() noexcept { end_sending(socket_); }

}  // namespace lamina::comm
