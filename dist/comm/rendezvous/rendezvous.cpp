#include "lamina/dist/comm/rendezvous/rendezvous.hpp"

#include <charconv>

#include "lamina/core/error.hpp"
#include "lamina/core/io/bytes.hpp"
#include "lamina/dist/comm/rendezvous/file_meeting.hpp"
#include "lamina/dist/comm/rendezvous/hello.hpp"
#include "lamina/dist/comm/rendezvous/tcp.hpp"

namespace lamina::comm {

namespace {

class Alone final : public CheckedRendezvous {
 public:
  std::string address() const override { return {}; }

 protected:
  std::vector<std::string> meet(const std::string& blob) override { return {blob}; }
};

constexpr std::string_view kPlaces = "tcp://HOST:PORT, fd://N or file:///DIRECTORY";

int descriptor_in(std::string_view text, const Meeting& meeting) {
  int fd = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), fd);
  if (error != std::errc() || end != text.data() + text.size() || fd < 0) {
    fail<ValueError>("rendezvous", "{} names no descriptor; fd://N is needed", quote(meeting.place));
  }
  if (meeting.rank != 0) {
    fail<ValueError>("rendezvous", "rank {} cannot meet at {}: only rank 0 listens; the others need tcp://HOST:PORT",
                     meeting.rank, quote(meeting.place));
  }
  return fd;
}

}  // namespace

std::unique_ptr<Rendezvous> rendezvous(const Meeting& meeting) {
  if (meeting.size < 1 || meeting.rank < 0 || meeting.rank >= meeting.size) {
    fail<ValueError>("rendezvous", "there is no rank {} in a world of {}", meeting.rank, meeting.size);
  }
  if (meeting.timeout.count() <= 0) {
    fail<ValueError>("rendezvous", "a timeout of {} ms; it must be positive", meeting.timeout.count());
  }
  if (meeting.job.size() > 255) {
    fail<ValueError>("rendezvous", "the name of the job has {} bytes; at most 255 are allowed", meeting.job.size());
  }
  const std::string_view place = meeting.place;
  if (place.empty() && meeting.size > 1) {
    fail<ValueError>("rendezvous", "{} ranks need a place to meet: {}", meeting.size, kPlaces);
  }
  if (place.starts_with("tcp://")) {
    const HostPort where = parse_host_port(place.substr(6), "rendezvous");
    if (where.port == 0) {
      fail<ValueError>("rendezvous", "{} has port 0, which the other ranks cannot know; fd://N serves for that",
                       quote(place));
    }
    if (meeting.size > 1) return meeting.rank == 0 ? tcp_host(meeting, where, {}) : tcp_guest(meeting, where);
  } else if (place.starts_with("fd://")) {
    Descriptor listener = adopt_listener(descriptor_in(place.substr(5), meeting));
    if (meeting.size > 1) return tcp_host(meeting, {}, std::move(listener));
  } else if (place.starts_with("file://")) {
    if (!place.starts_with("file:///")) {
      fail<ValueError>("rendezvous", "{} is no absolute path; file:///DIRECTORY is needed", quote(place));
    }
    if (meeting.size > 1) return file_meeting(meeting, std::string(place.substr(7)));
  } else if (!place.empty()) {
    fail<ValueError>("rendezvous", "{} is no place to meet; known: {}", quote(place), kPlaces);
  }
  return std::make_unique<Alone>();
}

}  // namespace lamina::comm
