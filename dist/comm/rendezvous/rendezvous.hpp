// Rendezvous: how ranks that know nothing of each other but a meeting place become a world. One primitive, exchange():
// everybody brings a blob, everybody leaves with all of them; transports put their addresses in it.
//
// Everybody has checked that protocol version, job, world size and ranks agree before anything else happens; who does
// not fit is refused by name on both sides, and a stray connection that speaks no protocol disturbs nobody.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace lamina::comm {

struct Meeting {
  int rank = 0;
  int size = 1;
  /// tcp://HOST:PORT (rank 0 listens there, IPv6 in brackets), fd://N (as tcp, rank 0 inherited the listening socket
  /// and now owns it; the others need tcp://), or file:///DIRECTORY (shared by all hosts, made if need be). A world of
  /// one needs none.
  std::string place;
  /// Ranks of different jobs refuse each other. Also what a left-over file is known by. At most 255 bytes.
  std::string job = "lamina";
  /// Of each exchange. The earliest deadline of those that came is everybody's.
  std::chrono::milliseconds timeout{std::chrono::minutes(5)};
  /// Among the ranks of this host, where the launcher says so; else -1.
  int local_rank = -1;
  int local_size = -1;
};

/// One thread at a time. Nothing happens in the background: rank 0 serves while it is in exchange(). Once a call threw,
/// all further ones throw the same.
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  /// The most bytes of a blob.
  static constexpr std::size_t kMaxBlob = std::size_t{16} << 20;

  /// Collective. Blob r of the result is rank r's. May be called again; each time is a meeting of its own. Throws on
  /// every rank that came
  ///   Timeout   naming the ranks that did not come,
  ///   Mismatch  when two do not fit together, naming both: at once, but a rank of another job is refused alone and
  ///             spoils the meeting only if its place is still empty at the deadline,
  ///   PeerLost  when a rank died in the middle (by way of a file: Timeout),
  /// IoError for a place that cannot be reached, saying what was tried; ValueError for a blob that is too large.
  virtual std::vector<std::string> exchange(const std::string& blob) = 0;

  /// The local address by which the meeting place was reached, numeric and without port: what this rank should
  /// advertise. Known after the first exchange(); empty before, and where there is none (file://, a world of one).
  virtual std::string address() const = 0;

 protected:
  Rendezvous() = default;
};

/// Throws ValueError for a malformed meeting. Does not touch the place yet, but for an inherited descriptor: IoError
/// when that is no listening socket.
std::unique_ptr<Rendezvous> rendezvous(const Meeting& meeting);

/// The meeting that a launcher arranged, by its variables; a world of one when there is none. The first that is there:
///
///   launcher   rank                  size                  local rank, local size
///   lamina     LAMINA_RANK           LAMINA_SIZE           LAMINA_LOCAL_RANK, LAMINA_LOCAL_SIZE
///   torchrun   RANK                  WORLD_SIZE            LOCAL_RANK, LOCAL_WORLD_SIZE
///   Open MPI   OMPI_COMM_WORLD_RANK  OMPI_COMM_WORLD_SIZE  OMPI_COMM_WORLD_LOCAL_RANK, OMPI_COMM_WORLD_LOCAL_SIZE
///   MPICH      PMI_RANK              PMI_SIZE              MPI_LOCALRANKID, MPI_LOCALNRANKS
///   Slurm      SLURM_PROCID          SLURM_NTASKS          SLURM_LOCALID (in a step: with SLURM_STEP_NODELIST)
///
/// The place is LAMINA_MEETING, else tcp://MASTER_ADDR:MASTER_PORT (the port after it when torchrun's agent keeps its
/// store there), whoever launched. Without them: under Slurm the first host of SLURM_STEP_NODELIST (if the system does
/// not know it, SLURM_LAUNCH_NODE_IPADDR; if the step has one node, 127.0.0.1), under Open MPI and MPICH 127.0.0.1 when
/// all ranks are on one host; with a port from 15000 to 31999 that is a hash of the job.
/// The job is LAMINA_JOB, else "lamina" and the launcher's own id of the run. LAMINA_TIMEOUT gives seconds.
///
/// Throws ValueError naming the variables that contradict each other, are missing or are no numbers. Not to be called
/// while another thread changes the environment.
Meeting meeting_from_environment();

}  // namespace lamina::comm
