#include "lamina/dist/comm/transport/shared_memory.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "lamina/core/error.hpp"
#include "lamina/dist/comm/transport/blob.hpp"
#include "lamina/dist/comm/transport/control.hpp"
#include "lamina/dist/comm/transport/mesh.hpp"
#include "lamina/dist/comm/transport/ring.hpp"

namespace lamina::comm {

namespace {

// ---- the shared memory: rank states, ring states, rings ----

struct RankSlot {
  alignas(128) std::atomic<std::uint32_t> sleeps;  // ring my doorbell
};
constexpr std::size_t kPage = 4096;
constexpr std::size_t whole_pages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

class Mapping {
 public:
  Mapping(const Descriptor& memory, int size, std::size_t ring_bytes) : size_(size), ring_bytes_(ring_bytes) {
    bytes_ = bytes_for(size, ring_bytes);
    void* at = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
    if (at == MAP_FAILED) fail<IoError>("shm", "cannot map {} bytes: {}", bytes_, text_of_errno(errno));
    at_ = static_cast<std::byte*>(at);
  }
  ~Mapping() { ::munmap(at_, bytes_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::atomic<std::uint32_t>& sleeps(int rank) const { return reinterpret_cast<RankSlot*>(at_)[rank].sleeps; }
  RingState& state(int from, int to) const {
    return reinterpret_cast<RingState*>(at_ + slots_bytes(size_))[from * size_ + to];
  }
  std::byte* ring(int from, int to) const {
    return at_ + head_bytes(size_) + static_cast<std::size_t>(from * size_ + to) * ring_bytes_;
  }

  static std::size_t bytes_for(int size, std::size_t ring_bytes) {
    return head_bytes(size) + static_cast<std::size_t>(size) * size * ring_bytes;
  }

 private:
  static std::size_t slots_bytes(int size) { return whole_pages(size * sizeof(RankSlot)); }
  static std::size_t head_bytes(int size) {
    return slots_bytes(size) + whole_pages(static_cast<std::size_t>(size) * size * sizeof(RingState));
  }

  int size_;
  std::size_t ring_bytes_;
  std::size_t bytes_ = 0;
  std::byte* at_ = nullptr;
};

// Nameless, of its full size (memory is used as it is touched), and sealed: a rank that is broken cannot cut it short
// under the others.
Descriptor make_memory(int size, std::size_t ring_bytes) {
  Descriptor memory(::memfd_create("lamina", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const auto bytes = static_cast<off_t>(Mapping::bytes_for(size, ring_bytes));
  if (!memory || ::ftruncate(memory.get(), bytes) != 0 ||
      ::fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    fail<IoError>("shm", "cannot make shared memory of {} bytes: {}", bytes, text_of_errno(errno));
  }
  return memory;
}

void hand_over(const Descriptor& memory, const Descriptor& socket, int peer) {
  char byte = 'M';
  iovec piece = {&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int));
  const int fd = memory.get();
  std::memcpy(CMSG_DATA(head), &fd, sizeof fd);
  ssize_t n;
  do n = ::sendmsg(socket.get(), &message, MSG_NOSIGNAL);
  while (n < 0 && errno == EINTR);
  if (n != 1) fail<PeerLost>("shm", "rank {} does not take the shared memory: {}", peer, text_of_errno(errno));
}

Descriptor take_over(const Descriptor& socket, int size, std::size_t ring_bytes, Clock::time_point deadline) {
  char byte = 0;
  iovec piece = {&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  for (;;) {
    message = {};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t n = ::recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (n == 1) break;
    if (n == 0) fail<PeerLost>("shm", "rank 0 went away before it handed over the shared memory");
    if (errno != EAGAIN && errno != EINTR) fail<PeerLost>("shm", "rank 0 is lost: {}", text_of_errno(errno));
    if (!wait_until(socket, POLLIN, deadline)) fail<Timeout>("shm", "rank 0 does not hand over the shared memory");
  }
  const cmsghdr* head = CMSG_FIRSTHDR(&message);
  if (byte != 'M' || head == nullptr || head->cmsg_type != SCM_RIGHTS || head->cmsg_len != CMSG_LEN(sizeof(int))) {
    fail<IoError>("shm", "rank 0 sent something else than the shared memory");
  }
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(head), sizeof fd);
  Descriptor memory(fd);
  struct stat status {};
  if (::fstat(fd, &status) != 0 || (::fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK) == 0 ||
      static_cast<std::size_t>(status.st_size) != Mapping::bytes_for(size, ring_bytes)) {
    fail<Mismatch>("shm", "rank 0 sent memory of {} bytes; {} ranks with rings of {} bytes need {}", status.st_size,
                   size, ring_bytes, Mapping::bytes_for(size, ring_bytes));
  }
  return memory;
}

// ---- the transport ----

class SharedMemoryTransport final : public ControlledTransport {
 public:
  SharedMemoryTransport(int rank, int size, std::shared_ptr<const Mapping> mapping, std::size_t ring_bytes,
                        std::vector<Descriptor> sockets, std::vector<std::string> names)
      : ControlledTransport("shm", rank, std::move(sockets), std::move(names)),
        mapping_(std::move(mapping)),
        sleeps_(mapping_->sleeps(rank)),
        taken_(size) {
    for (int peer = 0; peer < size; ++peer) {
      writers_.emplace_back(mapping_->state(rank, peer), mapping_->ring(rank, peer), ring_bytes, peer);
      readers_.emplace_back(mapping_->state(peer, rank), mapping_->ring(peer, rank), ring_bytes, peer);
    }
  }

  std::string name() const override { return "shm"; }
  Link link() const noexcept override { return {0.5e-6, 8e9}; }

  bool post(int peer, Outgoing& message) override {
    control_.require(peer);
    do {
      if (!writers_[peer].put(message)) return false;
      std::atomic<std::uint32_t>& sleeps = mapping_->sleeps(peer);
      if (sleeps.load(std::memory_order_seq_cst) != 0 && sleeps.exchange(0) != 0) control_.ring(peer);
    } while (message.left() > 0);
    ++taken_[peer];
    return true;
  }
  std::uint64_t taken(int peer) override { return taken_[peer]; }
  const MessageHeader* front(int peer) override { return readers_[peer].front(); }
  bool left(int peer) override { return control_.left(peer) && !readers_[peer].look(); }
  bool pull(int peer, Incoming& to) override {
    for (;;) {
      const RingReader::Pulled pulled = readers_[peer].pull(to);
      if (pulled == RingReader::Pulled::nothing) return false;
      if (readers_[peer].writer_wants_room()) control_.ring(peer);
      if (pulled == RingReader::Pulled::message) return true;
    }
  }

  void arm() override {
    control_.settle();
    sleeps_.store(1, std::memory_order_seq_cst);
    // What came between the last look and the store has rung no doorbell.
    bool stirred = false;
    for (RingReader& reader : readers_) stirred |= reader.arm();
    for (RingWriter& writer : writers_) stirred |= writer.arm();
    stirred_.store(stirred, std::memory_order_relaxed);
  }
  void disarm() override {
    sleeps_.store(0, std::memory_order_relaxed);
    for (RingWriter& writer : writers_) writer.disarm();
    control_.settle();
  }
  void sleep(Clock::time_point until) override {
    if (!stirred_.load(std::memory_order_relaxed)) control_.wait(until);
  }

 private:
  std::shared_ptr<const Mapping> mapping_;
  std::atomic<std::uint32_t>& sleeps_;
  std::atomic<bool> stirred_{false};
  std::vector<RingWriter> writers_;
  std::vector<RingReader> readers_;
  std::vector<std::uint64_t> taken_;  // a message that has been posted has been copied
};

}  // namespace

std::unique_ptr<Transport> shared_memory_transport(Rendezvous& rendezvous, int rank, int size,
                                                   const SharedMemoryOptions& options) {
  check_ring_bytes(options.ring_bytes);
  const auto deadline = Clock::now() + options.timeout;
  const RandomId id = random_id();
  const Host host = this_host();
  // Everybody on the host can see the name, but not what the handshake asks for.
  const std::string name = "lamina-" + to_string(random_id());
  const Descriptor listener = listen_on(SocketAddress::abstract_name(name));
  const Blob mine = {
      "shm",
      {to_string(id), host.identity, host.name, std::to_string(::getpid()), std::to_string(options.ring_bytes), name}};
  const std::vector<Blob> blobs = exchange_blobs(rendezvous, mine, rank, size);
  enum { kId, kIdentity, kName, kPid, kRing, kListener };

  MeshPlan plan;
  plan.where = "shm";
  plan.rank = rank;
  plan.size = size;
  plan.deadline = deadline;
  plan.world = random_id_from(blobs[0].fields[kId]);
  std::vector<std::string> names;
  for (int peer = 0; peer < size; ++peer) {
    const std::vector<std::string>& fields = blobs[peer].fields;
    if (fields[kIdentity] != blobs[0].fields[kIdentity]) {
      fail<Mismatch>("shm", "rank {} is on '{}' ({}), rank 0 on '{}' ({}): not one host and network namespace", peer,
                     fields[kName], fields[kIdentity], blobs[0].fields[kName], blobs[0].fields[kIdentity]);
    }
    if (fields[kRing] != blobs[0].fields[kRing]) {
      fail<Mismatch>("shm", "rank {} wants rings of {} bytes, rank 0 of {}", peer, fields[kRing],
                     blobs[0].fields[kRing]);
    }
    plan.reached.push_back({SocketAddress::abstract_name(fields[kListener])});
    names.push_back("process " + fields[kPid]);
  }
  std::vector<std::vector<Descriptor>> mesh = connect_mesh(listener, plan);

  std::vector<Descriptor> sockets(size);
  for (int peer = 0; peer < size; ++peer) {
    if (peer != rank) sockets[peer] = std::move(mesh[peer][0]);
  }
  Descriptor memory;
  if (rank == 0) {
    memory = make_memory(size, options.ring_bytes);
    for (int peer = 1; peer < size; ++peer) hand_over(memory, sockets[peer], peer);
  } else {
    memory = take_over(sockets[0], size, options.ring_bytes, deadline);
  }
  return std::make_unique<SharedMemoryTransport>(rank, size,
                                                 std::make_shared<Mapping>(memory, size, options.ring_bytes),
                                                 options.ring_bytes, std::move(sockets), std::move(names));
}

std::vector<std::unique_ptr<Transport>> shared_memory_transports(int size, const SharedMemoryOptions& options) {
  check_ring_bytes(options.ring_bytes);
  std::vector<std::vector<Descriptor>> sockets(size);
  for (auto& mine : sockets) mine.resize(size);
  for (int a = 0; a < size; ++a) {
    for (int b = a + 1; b < size; ++b) {
      int pair[2];
      if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0) {
        fail<IoError>("shm", "cannot make a pair of sockets: {}", text_of_errno(errno));
      }
      sockets[a][b] = Descriptor(pair[0]);
      sockets[b][a] = Descriptor(pair[1]);
    }
  }
  const auto mapping = std::make_shared<Mapping>(make_memory(size, options.ring_bytes), size, options.ring_bytes);
  std::vector<std::unique_ptr<Transport>> transports;
  transports.reserve(static_cast<std::size_t>(size));
  for (int rank = 0; rank < size; ++rank) {
    transports.push_back(std::make_unique<SharedMemoryTransport>(
        rank, size, mapping, options.ring_bytes, std::move(sockets[rank]), std::vector<std::string>(size, "a thread")));
  }
  return transports;
}

}  // namespace lamina::comm
