// A meeting place for ranks of one test, threads or forked processes: a pair of sockets between rank 0 and each other.
#pragma once

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "lamina/core/io/descriptor.hpp"
#include "lamina/dist/comm/rendezvous/rendezvous.hpp"

namespace lamina::comm {

class LocalRendezvous final : public Rendezvous {
 public:
  /// One a rank. Made before the ranks are started.
  static std::vector<std::unique_ptr<LocalRendezvous>> of(int size, const std::string& address = "127.0.0.1") {
    std::vector<std::unique_ptr<LocalRendezvous>> all;
    for (int rank = 0; rank < size; ++rank) all.push_back(std::make_unique<LocalRendezvous>(rank, size, address));
    for (int rank = 1; rank < size; ++rank) {
      int pair[2];
      if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) throw std::runtime_error("socketpair");
      for (const int fd : pair) {
        const timeval patience = {30, 0};
        ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
      }
      all[0]->sockets_[rank] = Descriptor(pair[0]);
      all[rank]->sockets_[0] = Descriptor(pair[1]);
    }
    return all;
  }
  LocalRendezvous(int rank, int size, std::string address)
      : rank_(rank), size_(size), address_(std::move(address)), sockets_(size) {}

  std::vector<std::string> exchange(const std::string& blob) override {
    std::vector<std::string> all(size_);
    all[rank_] = blob;
    if (rank_ == 0) {
      for (int peer = 1; peer < size_; ++peer) all[peer] = receive(sockets_[peer].get());
      for (int peer = 1; peer < size_; ++peer) {
        for (const std::string& each : all) send(sockets_[peer].get(), each);
      }
    } else {
      send(sockets_[0].get(), blob);
      for (std::string& each : all) each = receive(sockets_[0].get());
    }
    return all;
  }
  std::string address() const override { return address_; }

 private:
  static void send(int fd, const std::string& text) {
    const std::uint64_t size = text.size();
    move(fd, const_cast<std::uint64_t*>(&size), sizeof size, true);
    move(fd, const_cast<char*>(text.data()), text.size(), true);
  }
  static std::string receive(int fd) {
    std::uint64_t size = 0;
    move(fd, &size, sizeof size, false);
    std::string text(size, '\0');
    move(fd, text.data(), text.size(), false);
    return text;
  }
  static void move(int fd, void* data, std::size_t bytes, bool out) {
    for (char* at = static_cast<char*>(data); bytes > 0;) {
      const ssize_t n = out ? ::send(fd, at, bytes, MSG_NOSIGNAL) : ::recv(fd, at, bytes, 0);
      if (n <= 0) throw std::runtime_error("a rank did not come to the meeting");
      at += n;
      bytes -= static_cast<std::size_t>(n);
    }
  }

  int rank_, size_;
  std::string address_;
  std::vector<Descriptor> sockets_;
};

}  // namespace lamina::comm
