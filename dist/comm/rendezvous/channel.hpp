// Channel: frames over a stream socket, without blocking. A frame is a fixed head, the same in all versions of the
// protocol (magic, version, kind, length), and a payload. What does not begin like one is known by its first bytes.
// One thread at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "lamina/dist/comm/rendezvous/hello.hpp"
#include "lamina/dist/comm/transport/socket.hpp"

namespace lamina::comm {

struct Frame {
  enum class Kind : std::uint32_t {
    hello = 1,    ///< Hello, guest to host
    welcome = 2,  ///< the host's Hello: the guest is in
    blob = 3,     ///< milliseconds left, blob
    blobs = 4,    ///< encode_blobs()
    verdict = 5,  ///< Verdict; the connection closes
  };
  Kind kind = Kind::hello;
  std::uint32_t version = kProtocolVersion;
  std::string payload;
};

/// The bytes of a frame on the wire, to be shared by the channels that send them.
std::shared_ptr<const std::string> encode(const Frame& frame);

class Channel {
 public:
  explicit Channel(Descriptor socket) : socket_(std::move(socket)) {}

  const Descriptor& socket() const noexcept { return socket_; }

  enum class Read {
    nothing,  ///< no whole frame yet
    frame,    ///< frame() is one
    gone,     ///< the peer closed or died
    garbage,  ///< this is no frame, or one of more than `most` bytes
  };
  /// Takes in what has arrived, at most up to the end of a frame. Memory grows with what arrives, never with what a
  /// head claims.
  Read read(std::uint64_t most);
  const Frame& frame() const noexcept { return frame_; }
  /// What came instead of a frame, for messages; and the errno of why it is gone.
  const std::string& garbage() const noexcept { return in_; }
  int error() const noexcept { return error_; }

  void send(std::shared_ptr<const std::string> frame);
  /// Sends what there is room for. False when the peer is gone.
  bool flush();
  bool flushed() const noexcept { return out_.empty(); }
  /// No more will be sent: the peer reads what was sent, then the end.
  void end() noexcept;

 private:
  Descriptor socket_;
  std::string in_;
  Frame frame_;
  int error_ = 0;
  std::deque<std::shared_ptr<const std::string>> out_;
  std::size_t sent_ = 0;  // of the first
};

}  // namespace lamina::comm
