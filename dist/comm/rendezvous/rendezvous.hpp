// Rendezvous: how ranks that know nothing of each other but a meeting place become a world. One primitive, exchange():
// everybody brings a blob, everybody leaves with all of them; transports put their addresses in it.
//
// Everybody has checked that protocol version, job, world size and ranks agree before anything else happens; who does
// not fit is refused by name on both sides, and a stray connection that speaks no protocol disturbs nobody.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace lamina::comm {

struct Meeting {
  int rank = 0;
  int size = 1;
  /// tcp://HOST:PORT (rank 0 listens there, IPv6 in brackets), fd://N (as tcp, rank 0 inherited the listening socket;
  /// the others need tcp://), or file:///DIRECTORY (shared by all hosts).
  std::string place;
  /// Ranks of different jobs refuse each other. Also what a left-over file is known by.
  std::string job = "lamina";
  std::chrono::milliseconds timeout{std::chrono::minutes(5)};
};

class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  /// Collective. Blob r of the result is rank r's. May be called again; each time is a meeting of its own. Throws
  /// Timeout naming the ranks that did not come, Mismatch on every rank when they do not fit together, IoError for a
  /// place that cannot be reached, saying what was tried.
  virtual std::vector<std::string> exchange(const std::string& blob) = 0;
  /// The local address by which the meeting place was reached: what this rank should advertise. Empty if there is none.
  virtual std::string address() const = 0;
};

/// Throws ValueError for a malformed meeting.
std::unique_ptr<Rendezvous> rendezvous(const Meeting& meeting);

/// The meeting that a launcher arranged: lamina launch, torchrun, Open MPI, MPICH or Slurm, by their variables. A world
/// of one when there is none. Throws ValueError naming the variables that contradict each other or are not numbers.
Meeting meeting_from_environment();

}  // namespace lamina::comm
