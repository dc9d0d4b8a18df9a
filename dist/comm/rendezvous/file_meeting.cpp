#include "lamina/dist/comm/rendezvous/file_meeting.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <thread>

#include "lamina/core/error.hpp"
#include "lamina/core/io/atomic_file.hpp"
#include "lamina/core/io/bytes.hpp"
#include "lamina/core/io/file.hpp"
#include "lamina/dist/comm/rendezvous/hello.hpp"
#include "lamina/dist/comm/transport/socket.hpp"

namespace lamina::comm {

namespace {

using namespace std::chrono_literals;
using Time = std::chrono::steady_clock;
using Deadline = Time::time_point;
namespace fs = std::filesystem;

constexpr auto kShortestPause = 1ms, kLongestPause = 20ms;
constexpr auto kLookAround = 200ms;       // for ranks of other jobs
constexpr auto kLatecomers = 2s;          // for a verdict to be read
constexpr auto kVerdictOnItsWay = 500ms;  // rank 0 ends the meeting at our deadline; its word for it is the better one

// ---- files ----

std::uint64_t hash_of(std::string_view text) { return hash_bytes(std::as_bytes(std::span(text.data(), text.size()))); }

void publish(const fs::path& path, std::string content) {
  put_number(content, hash_of(content));
  AtomicFile file(path, {.sync = false});
  file.write(content);
  file.commit();
}

/// Empty when it is not there, or not all of it: a shared file system may show a name before the contents.
std::optional<std::string> published(const fs::path& path) {
  std::vector<std::byte> bytes;
  try {
    bytes = read_file(path);
  } catch (const IoError&) {
    return std::nullopt;
  }
  if (bytes.size() < 8) return std::nullopt;
  std::string out(reinterpret_cast<const char*>(bytes.data()), bytes.size() - 8);
  if (hash_of(out) != load_little<std::uint64_t>(bytes.data() + out.size())) return std::nullopt;
  return out;
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> out;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    out.push_back(at->path().filename().native());
  }
  return out;
}

/// "2.13.0f3a" is {"2", "13", "0f3a"}.
struct Name {
  std::string_view first, nonce;
  int rank = -1;
};
std::optional<Name> parse(std::string_view text) {
  const std::size_t a = text.find('.'), b = text.find('.', a + 1);
  if (a == std::string_view::npos || b == std::string_view::npos) return std::nullopt;
  Name name{.first = text.substr(0, a), .nonce = text.substr(b + 1)};
  const auto [end, error] = std::from_chars(text.data() + a + 1, text.data() + b, name.rank);
  if (error != std::errc() || end != text.data() + b || name.rank < 0) return std::nullopt;
  return name;
}

std::string with_version(const std::string& content) {
  std::string out;
  put_number(out, kProtocolVersion);
  put_text(out, content);
  return out;
}

/// What a rank brings: version, hello, blob.
std::string introduce(const Hello& hello, const std::string& blob) {
  std::string out = with_version(encode(hello));
  put_text(out, blob);
  return out;
}
struct Introduced {
  Hello hello;
  std::string blob;
};
std::optional<Introduced> introduced(const std::optional<std::string>& content) {
  if (!content) return std::nullopt;
  WireReader reader(*content);
  const auto version = static_cast<std::uint32_t>(reader.number());
  const auto hello = decode_hello(reader.text(), version);
  if (!hello || !reader.ok()) return std::nullopt;
  return Introduced{*hello, std::string(reader.text())};
}

struct Session {
  std::string token;
  Hello host;
};
std::optional<Session> session_in(const fs::path& job) {
  const auto found = introduced(published(job / "session"));
  // The token names a folder: nothing but what to_string(random_id()) makes.
  if (!found || found->blob.empty() || found->blob.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return std::nullopt;
  }
  return Session{found->blob, found->hello};
}

void pause(std::chrono::milliseconds& length) {
  std::this_thread::sleep_for(length);
  length = std::min<std::chrono::milliseconds>(2 * length, kLongestPause);
}

// ---- what host and guests have in common ----

class FileMeeting : public CheckedRendezvous {
 public:
  FileMeeting(const Meeting& meeting, const fs::path& directory)
      : meeting_(meeting),
        directory_(directory),
        job_(directory / fmt::format("lamina-{:016x}", hash_of(meeting.job))),
        nonce_(to_string(random_id())) {}
  ~FileMeeting() override { leave(); }

  std::string address() const final { return {}; }

 protected:
  std::vector<std::string> meet(const std::string& blob) final {
    ++meetings_;
    start_ = Time::now();
    deadline_ = start_ + meeting_.timeout;
    try {
      return meet_here(blob);
    } catch (...) {
      leave();
      throw;
    }
  }
  virtual std::vector<std::string> meet_here(const std::string& blob) = 0;

  fs::path folder() const { return job_ / token_; }
  fs::path file_of(int rank) const { return folder() / fmt::format("{}.{}.{}", meetings_, rank, nonce_); }
  Hello hello() const { return hello_of(meeting_, deadline_); }

  void make_folder(const fs::path& path) const {
    // Again when another run's last rank removes it just then.
    std::error_code error;
    for (int attempt = 0; attempt < 10; ++attempt) {
      fs::create_directories(path, error);
      if (!error) return;
    }
    fail_io("create the folder", path, error.value());
  }

  /// Whether a file is of about the time of this meeting, and not what a crash left some day. By the clock of the file
  /// system: compared with a file of ours.
  bool recent(const fs::path& theirs, const fs::path& ours) const {
    std::error_code error;
    const auto then = fs::last_write_time(theirs, error), now = fs::last_write_time(ours, error);
    return !error && then + meeting_.timeout >= now;
  }

  /// Calls use(folder) for the folders of other jobs, now and then.
  template <class F>
  void look_around(F&& use) {
    if (Time::now() < next_look_) return;
    next_look_ = Time::now() + kLookAround;
    for (const std::string& name : names_in(directory_)) {
      if (name.starts_with("lamina-") && directory_ / name != job_) use(directory_ / name);
    }
  }

  /// The last one out removes what there is.
  void leave() noexcept {
    if (token_.empty()) return;
    try {
      std::error_code error;
      if (fs::exists(folder(), error)) {
        publish(folder() / fmt::format("left.{}", meeting_.rank), "");
        if (static_cast<int>(left().size()) == meeting_.size) remove_session();
      }
    } catch (...) {  // a folder that cannot be written any more; what is left over is known as such
    }
    token_.clear();
  }

  std::set<std::string> left() const {
    std::set<std::string> out;
    for (const std::string& name : names_in(folder())) {
      if (name.starts_with("left.")) out.insert(name);
    }
    return out;
  }

  void remove_session() noexcept {
    std::error_code error;
    const auto session = session_in(job_);
    if (session && session->token == token_) fs::remove(job_ / "session", error);
    fs::remove_all(folder(), error);
    fs::remove(job_, error);  // if nothing else is in it
  }

  Meeting meeting_;
  fs::path directory_, job_;
  std::string nonce_, token_;
  int meetings_ = 0;
  Deadline start_, deadline_;
  Deadline next_look_;
};

// ---- rank 0 ----

class FileHost final : public FileMeeting {
 public:
  using FileMeeting::FileMeeting;

 private:
  std::vector<std::string> meet_here(const std::string& blob) override;
  void gather();
  void look_for_strangers(std::span<const int> absent);
  void forget_earlier_runs();
  [[noreturn]] void give_up(std::span<const int> absent);
  [[noreturn]] void end_with(const Verdict& verdict);

  struct Guest {
    Hello hello;
    std::string nonce, blob;
  };
  std::map<int, Guest> guests_;  // of this exchange
  Hello me_;
  std::int64_t deadline_of_ = 0;
  std::map<std::int64_t, std::string> strangers_;  // of other jobs, by rank
};

std::vector<std::string> FileHost::meet_here(const std::string& blob) {
  me_ = hello();
  deadline_of_ = 0;
  guests_.clear();
  if (meetings_ == 1) {
    token_ = to_string(random_id());
    make_folder(folder());
    publish(job_ / "session", introduce(me_, token_));
  }
  auto nap = std::chrono::milliseconds(kShortestPause);
  for (;;) {
    gather();
    std::vector<int> absent;
    for (int r = 1; r < meeting_.size; ++r) {
      if (!guests_.contains(r)) absent.push_back(r);
    }
    if (absent.empty()) break;
    const auto session = session_in(job_);
    if (session && session->token != token_) {
      // Whoever is rank 0 there hears of us, too.
      std::error_code error;
      const fs::path there = job_ / session->token;
      if (fs::exists(there, error)) publish(there / fmt::format("{}.0.{}", 1, nonce_), introduce(me_, ""));
      end_with({.text = came_twice(session->host, me_)});
    }
    look_for_strangers(absent);
    if (Time::now() >= deadline_) give_up(absent);
    pause(nap);
  }
  std::vector<std::string> blobs{blob};
  std::string all;
  for (auto& [rank, guest] : guests_) {
    put_text(all, guest.nonce);
    put_text(all, guest.hello.who);
    blobs.push_back(std::move(guest.blob));
  }
  put_text(all, encode_blobs(blobs));
  publish(folder() / fmt::format("all.{}", meetings_), all);
  // Everybody who is here has read the exchange before.
  std::error_code error;
  if (meetings_ > 1) fs::remove(folder() / fmt::format("all.{}", meetings_ - 1), error);
  for (const auto& [rank, guest] : guests_) {
    fs::remove(folder() / fmt::format("{}.{}.{}", meetings_, rank, guest.nonce), error);
  }
  if (meetings_ == 1) forget_earlier_runs();
  return blobs;
}

void FileHost::gather() {
  const std::string wanted = std::to_string(meetings_);
  for (const std::string& text : names_in(folder())) {
    const auto name = parse(text);
    if (!name || name->first != wanted) continue;
    const auto known = guests_.find(name->rank);
    if (known != guests_.end() && known->second.nonce == name->nonce) continue;
    auto found = introduced(published(folder() / text));
    if (!found) continue;
    if (const auto wrong = misfit(me_, found->hello)) end_with({.text = *wrong});
    if (known != guests_.end()) end_with({.text = came_twice(known->second.hello, found->hello)});
    const Deadline theirs = Time::now() + found->hello.left;
    if (theirs < deadline_) {
      deadline_ = theirs;
      deadline_of_ = name->rank;
    }
    guests_[name->rank] = {found->hello, std::string(name->nonce), std::move(found->blob)};
  }
}

void FileHost::look_for_strangers(std::span<const int> absent) {
  look_around([&](const fs::path& job) {
    for (const std::string& text : names_in(job)) {
      const auto name = parse(text);
      if (!name || name->first != "waiting" || std::find(absent.begin(), absent.end(), name->rank) == absent.end() ||
          !recent(job / text, job_ / "session")) {
        continue;
      }
      const auto found = introduced(published(job / text));
      if (!found || found->hello.size != me_.size) continue;
      if (const auto wrong = other_job(me_, found->hello)) strangers_[name->rank] = *wrong;
    }
  });
}

void FileHost::give_up(std::span<const int> absent) {
  std::string text = fmt::format("{} of {} {} not come to {}", list_ranks(absent), meeting_.size,
                                 absent.size() == 1 ? "has" : "have", meeting_.place);
  if (meetings_ > 1) text += fmt::format(" for exchange {}", meetings_);
  text += fmt::format(" by the deadline of rank {}; rank 0 waited {:.1f} s", deadline_of_,
                      std::chrono::duration<double>(Time::now() - start_).count());
  bool mistaken = false;
  for (const auto& [rank, wrong] : strangers_) {
    text += "; " + wrong;
    mistaken |= std::find(absent.begin(), absent.end(), rank) != absent.end();
  }
  end_with({mistaken ? Verdict::Kind::mismatch : Verdict::Kind::timeout, text});
}

void FileHost::end_with(const Verdict& verdict) {
  const std::string content = encode(verdict);
  const std::string wanted = std::to_string(meetings_);
  const bool others_come = Time::now() < deadline_;
  const Deadline latest = Time::now() + kLatecomers;
  // Until everybody has read it, or nobody comes any more. Two of one rank both get theirs.
  std::set<std::string> told;
  do {
    for (const std::string& text : names_in(folder())) {
      const auto name = parse(text);
      if (!name || name->first != wanted || !told.insert(text).second) continue;
      publish(folder() / fmt::format("verdict.{}.{}", name->rank, name->nonce), content);
    }
    const std::size_t gone = left().size();
    if (gone >= (others_come ? static_cast<std::size_t>(meeting_.size - 1) : told.size())) break;
    std::this_thread::sleep_for(kLongestPause);
  } while (Time::now() < latest);
  remove_session();
  raise(verdict);
}

void FileHost::forget_earlier_runs() {
  std::error_code error;
  for (const std::string& name : names_in(job_)) {
    if (name != "session" && name != token_) fs::remove_all(job_ / name, error);
  }
}

// ---- the others ----

class FileGuest final : public FileMeeting {
 public:
  using FileMeeting::FileMeeting;
  ~FileGuest() override { withdraw(); }

 private:
  std::vector<std::string> meet_here(const std::string& blob) override;
  void withdraw() noexcept;
  bool join(const std::string& blob);
  void wait_visibly();
  [[noreturn]] void give_up();

  Session session_;
  fs::path waiting_;
  std::string stranger_;  // rank 0 of another job
  std::string twin_;      // somebody else met here as this rank
};

std::vector<std::string> FileGuest::meet_here(const std::string& blob) {
  bool here = false;  // our blob is where rank 0 looks for it
  auto nap = std::chrono::milliseconds(kShortestPause);
  for (;; pause(nap)) {
    const auto session = session_in(job_);
    if (meetings_ > 1 && (!session || session->token != token_)) {
      fail<PeerLost>("rendezvous", "{} has left {}", session_.host.name(), meeting_.place);
    }
    if (session && session->token != token_) {
      session_ = *session;
      token_ = session->token;
      here = false;
      twin_.clear();
    }
    if (session) {
      if (!here) here = join(blob);
      const std::string verdict_name = fmt::format("verdict.{}.{}", meeting_.rank, nonce_);
      if (const auto content = published(folder() / verdict_name)) {
        if (const auto verdict = decode_verdict(*content)) raise(*verdict);
      }
      if (const auto content = published(folder() / fmt::format("all.{}", meetings_))) {
        WireReader reader(*content);
        bool ours = false;
        for (int r = 1; r < meeting_.size; ++r) {
          const std::string_view nonce = reader.text(), who = reader.text();
          if (r != meeting_.rank) continue;
          ours = nonce == nonce_;
          Hello other = hello();
          other.who = who;
          // Or a run that crashed left it; then rank 0 is still to come.
          if (!ours) twin_ = came_twice(other, hello());
        }
        std::vector<std::string> blobs = decode_blobs(reader.text(), meeting_.size);
        if (ours && !blobs.empty()) return blobs;
      }
    } else {
      wait_visibly();
    }
    if (Time::now() >= deadline_ + (session ? std::chrono::milliseconds(kVerdictOnItsWay) : 0ms)) give_up();
  }
}

void FileGuest::withdraw() noexcept {
  if (waiting_.empty()) return;
  std::error_code error;
  fs::remove(waiting_, error);
  fs::remove(job_, error);  // if nothing else is in it
  waiting_.clear();
}

/// False when the session is over meanwhile.
bool FileGuest::join(const std::string& blob) {
  withdraw();
  std::error_code error;
  try {
    publish(file_of(meeting_.rank), introduce(hello(), blob));
  } catch (const IoError&) {
    if (fs::exists(folder(), error)) throw;
    return false;
  }
  return true;
}

void FileGuest::wait_visibly() {
  if (waiting_.empty()) {
    make_folder(job_);
    waiting_ = job_ / fmt::format("waiting.{}.{}", meeting_.rank, nonce_);
    publish(waiting_, introduce(hello(), ""));
  }
  look_around([&](const fs::path& job) {
    const auto other = session_in(job);
    if (!other || other->host.size != meeting_.size || !recent(job / "session", waiting_)) return;
    if (const auto wrong = other_job(other->host, hello())) stranger_ = *wrong;
  });
}

void FileGuest::give_up() {
  withdraw();
  if (!twin_.empty()) fail<Mismatch>("rendezvous", "{}", twin_);
  if (!stranger_.empty() && token_.empty()) {
    fail<Mismatch>("rendezvous", "rank 0 has not come to {}: {}", meeting_.place, stranger_);
  }
  const double waited = std::chrono::duration<double>(Time::now() - start_).count();
  if (token_.empty()) fail<Timeout>("rendezvous", "rank 0 has not come to {} for {:.1f} s", meeting_.place, waited);
  fail<Timeout>("rendezvous", "{} has not answered at {} for {:.1f} s", session_.host.name(), meeting_.place, waited);
}

}  // namespace

std::unique_ptr<Rendezvous> file_meeting(const Meeting& meeting, std::filesystem::path directory) {
  if (meeting.rank == 0) return std::make_unique<FileHost>(meeting, directory);
  return std::make_unique<FileGuest>(meeting, directory);
}

}  // namespace lamina::comm
