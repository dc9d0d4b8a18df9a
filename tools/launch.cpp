#include "lamina/tools/launch.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>

#include "lamina/core/error.hpp"
#include "lamina/core/io/bytes.hpp"
#include "lamina/core/io/descriptor.hpp"
#include "lamina/dist/comm/transport/socket.hpp"
#include "lamina/tools/message.hpp"

extern char** environ;

namespace lamina::tools {

namespace {

using Time = std::chrono::steady_clock;

constexpr std::size_t kLongestLine = std::size_t{1} << 16;  // of prefixed output; a longer one is cut in pieces
constexpr int kMostRanks = 4096;

[[noreturn]] void fail_system(std::string_view what) {
  fail<IoError>("launch", "cannot {}: {}", what, std::generic_category().message(errno));
}

struct Pipe {
  Descriptor read, write;
};
Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail_system("make a pipe");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

// ---- processes ----

/// Children of this process, among them the orphans it has adopted.
std::vector<pid_t> children() {
  std::vector<pid_t> out;
  std::error_code error;
  for (std::filesystem::directory_iterator at("/proc", error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().native();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    // Not by an ifstream: reading what has just ended is an error, which that throws.
    const Descriptor file(::open((at->path() / "stat").c_str(), O_RDONLY | O_CLOEXEC));
    char text[512];
    const ssize_t n = file ? ::read(file.get(), text, sizeof text - 1) : 0;
    const std::string stat(text, static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    // "123 (a name that may hold anything) S 45 ..."
    const std::size_t state = stat.rfind(") ");
    if (state == std::string::npos || state + 4 > stat.size()) continue;
    if (std::atoi(stat.c_str() + state + 4) == ::getpid()) out.push_back(std::atoi(name.c_str()));
  }
  return out;
}

sigset_t signals_we_take() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  return set;
}

bool asked_to_stop() {
  sigset_t pending;
  return ::sigpending(&pending) == 0 && (sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1 ||
                                         sigismember(&pending, SIGHUP) == 1);
}

/// In a new child: dies with its parent, is its own process group.
void begin_child(pid_t parent, int death_signal) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, death_signal);
  if (::getppid() != parent) ::_exit(1);  // it died before that
}

struct Ending {
  int code = 0;
  std::string text;  // "exited with 7"
};
Ending ending_of(int status) {
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    return {128 + signal, fmt::format("was killed by signal {} ({})", signal, ::strsignal(signal))};
  }
  return {WEXITSTATUS(status), fmt::format("exited with {}", WEXITSTATUS(status))};
}

// ---- output ----

/// One stream of one rank, passed on line by line.
struct Stream {
  Descriptor from;
  int to;
  const bool* stopping;
  std::string prefix, line;
  bool lost = false;  // nobody reads it, or not now that it is to end

  /// Waits for who reads it, but not long once the ranks are stopped.
  void put(std::string_view text) {
    constexpr std::size_t kNeverBlocks = 4096;  // PIPE_BUF
    for (int hurried = 0; !text.empty() && !lost;) {
      pollfd poll = {to, POLLOUT, 0};
      if (::poll(&poll, 1, 50) == 0) {
        lost = (*stopping || asked_to_stop()) && ++hurried > 10;
        continue;
      }
      const ssize_t n = ::write(to, text.data(), std::min(text.size(), kNeverBlocks));
      if (n > 0) text.remove_prefix(static_cast<std::size_t>(n));
      lost = n < 0 && errno != EINTR && errno != EAGAIN;
    }
  }

  /// All whole lines there are; at the end the rest, too.
  void pass_on(bool end) {
    std::size_t from_here = 0, newline = 0;
    std::string out;
    while ((newline = line.find('\n', from_here)) != std::string::npos) {
      out += prefix + line.substr(from_here, newline + 1 - from_here);
      from_here = newline + 1;
    }
    line.erase(0, from_here);
    if ((end && !line.empty()) || line.size() >= kLongestLine) {
      out += prefix + line + '\n';
      line.clear();
    }
    put(out);
  }
  /// Reads a piece of what is there. False when there is nothing.
  bool read() {
    char piece[4096];
    ssize_t n = -1;
    while (from && (n = ::read(from.get(), piece, sizeof piece)) < 0 && errno == EINTR) {
    }
    if (n < 0) return false;
    if (n == 0) from.close();
    line.append(piece, static_cast<std::size_t>(n));
    pass_on(n == 0);
    return n > 0;
  }
};

// ---- the keeper ----

class Keeper {
 public:
  Keeper(const LaunchOptions& options, Descriptor listener)
      : options_(options),
        listener_(std::move(listener)),
        place_("tcp://" + to_string(comm::SocketAddress::of(listener_))) {}
  /// What launch() returns.
  int run();

 private:
  void start(int rank, const std::string& job);
  [[noreturn]] void become(int rank, const std::vector<std::string>& variables, const Descriptor& failure,
                           const Pipe* output);
  void wait(int signals);
  void reap();
  void stop(int signal, int code);
  void signal_all(int signal);
  int running() const {
    return static_cast<int>(std::count_if(ranks_.begin(), ranks_.end(), [](pid_t p) { return p > 0; }));
  }

  const LaunchOptions& options_;
  Descriptor listener_;
  std::string place_;
  std::vector<pid_t> ranks_;  // 0: has ended
  std::vector<Stream> streams_;
  int code_ = 0;
  bool stopping_ = false, killing_ = false;
  Time::time_point kill_at_ = Time::time_point::max();
};

int Keeper::run() {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const sigset_t set = signals_we_take();
  const Descriptor signals(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals) fail_system("listen to signals");
  const std::string job = fmt::format("launch-{}-{}", ::getpid(), Time::now().time_since_epoch().count());
  for (int rank = 0; rank < options_.ranks && !stopping_; ++rank) start(rank, job);
  while (running() > 0) wait(signals.get());
  // What the ranks have left running.
  if (!stopping_ && !children().empty()) stop(SIGTERM, code_);
  while (!children().empty()) wait(signals.get());
  for (Stream& stream : streams_) {
    while (stream.read()) {
    }
    stream.pass_on(true);
  }
  return code_;
}

void Keeper::start(int rank, const std::string& job) {
  std::vector<std::string> variables = options_.env;
  const auto set = [&](const char* name, const std::string& value) {
    variables.push_back(std::string(name) + "=" + value);
  };
  set("LAMINA_RANK", std::to_string(rank));
  set("LAMINA_SIZE", std::to_string(options_.ranks));
  set("LAMINA_LOCAL_RANK", std::to_string(rank));
  set("LAMINA_LOCAL_SIZE", std::to_string(options_.ranks));
  set("LAMINA_MEETING", rank == 0 ? fmt::format("fd://{}", listener_.get()) : place_);
  set("LAMINA_JOB", job);

  Pipe failure = make_pipe();
  Pipe output[2];
  if (options_.prefix) output[0] = make_pipe(), output[1] = make_pipe();
  const pid_t keeper = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) fail_system("start a process");
  if (child == 0) {
    begin_child(keeper, SIGKILL);
    become(rank, variables, failure.write, options_.prefix ? output : nullptr);
  }
  ::setpgid(child, child);  // whoever of the two comes first
  ranks_.push_back(child);
  if (rank == 0) listener_.close();  // its death closes the last one
  for (int i = 0; options_.prefix && i < 2; ++i) {
    ::fcntl(output[i].read.get(), F_SETFL, O_NONBLOCK);
    streams_.push_back({std::move(output[i].read), i + 1, &stopping_, fmt::format("[{}] ", rank), {}});
  }
  // Ends with exec(), or says why there was none.
  failure.write.close();
  int error = 0;
  ssize_t n = 0;
  while ((n = ::read(failure.read.get(), &error, sizeof error)) < 0 && errno == EINTR) {
  }
  if (n == sizeof error) {
    print_message(
        fmt::format("launch: cannot run {}: {}", quote(options_.program[0]), std::generic_category().message(error)));
    stop(SIGTERM, error == ENOENT ? 127 : 126);
  }
}

void Keeper::become(int rank, const std::vector<std::string>& variables, const Descriptor& failure,
                    const Pipe* output) {
  std::vector<std::string> names;
  names.reserve(variables.size());
  for (const std::string& variable : variables) names.push_back(variable.substr(0, variable.find('=') + 1));
  std::vector<char*> env, arguments;
  for (char** at = environ; *at != nullptr; ++at) {
    const auto is_ours = [&](const std::string& name) { return std::string_view(*at).starts_with(name); };
    if (std::none_of(names.begin(), names.end(), is_ours)) env.push_back(*at);
  }
  for (std::size_t i = 0; i < variables.size(); ++i) {  // the last of one name
    if (std::find(names.begin() + static_cast<std::ptrdiff_t>(i) + 1, names.end(), names[i]) == names.end()) {
      env.push_back(const_cast<char*>(variables[i].c_str()));
    }
  }
  env.push_back(nullptr);
  for (const std::string& argument : options_.program) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);

  if (rank == 0) ::fcntl(listener_.get(), F_SETFD, 0);
  // A process of another group may not read from the terminal.
  if (rank != 0 || ::isatty(0) == 1) {
    const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::dup2(null, 0);
  }
  for (int i = 0; output != nullptr && i < 2; ++i) ::dup2(output[i].write.get(), i + 1);
  for (const int signal : {SIGPIPE, SIGXFSZ}) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execvpe(arguments[0], arguments.data(), env.data());
  const int error = errno;
  (void)!::write(failure.get(), &error, sizeof error);
  ::_exit(127);
}

/// Until something happens.
void Keeper::wait(int signals) {
  std::vector<pollfd> polls = {{signals, POLLIN, 0}};
  for (const Stream& stream : streams_) polls.push_back({stream.from.get(), POLLIN, 0});
  // Orphans that end are not always ours to be told of.
  const auto until =
      std::min(kill_at_, Time::now() + (stopping_ ? std::chrono::milliseconds(50) : std::chrono::hours(1)));
  ::poll(polls.data(), polls.size(), comm::poll_timeout(until));
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    if (polls[i + 1].revents != 0) streams_[i].read();
  }
  signalfd_siginfo signal;
  while (::read(signals, &signal, sizeof signal) == sizeof signal) {
    const int number = static_cast<int>(signal.ssi_signo);
    if (number != SIGCHLD) stop(number, 128 + number);
  }
  reap();
  if (killing_ || Time::now() >= kill_at_) {
    killing_ = true;
    kill_at_ = Time::now() + std::chrono::milliseconds(50);  // orphans appear as their parents die
    signal_all(SIGKILL);
  }
}

void Keeper::reap() {
  int status = 0;
  pid_t pid = 0;
  while ((pid = ::waitpid(-1, &status, WNOHANG)) > 0) {
    const auto at = std::find(ranks_.begin(), ranks_.end(), pid);
    if (at == ranks_.end()) continue;  // an orphan
    *at = 0;
    const Ending ending = ending_of(status);
    if (ending.code == 0 || stopping_) continue;
    const bool others = running() > 0;
    print_message(fmt::format("launch: rank {} of {} (pid {}) {}{}", at - ranks_.begin(), options_.ranks, pid,
                              ending.text, others ? "; the others are stopped" : ""));
    stop(SIGTERM, ending.code);
  }
}

/// The first time the ranks are asked to end, and killed a while later; a second signal from outside kills them now.
void Keeper::stop(int signal, int code) {
  if (stopping_) {
    kill_at_ = Time::now();
    return;
  }
  stopping_ = true;
  code_ = code;
  kill_at_ = Time::now() + std::chrono::milliseconds(static_cast<std::int64_t>(1000 * options_.grace));
  signal_all(signal);
}

/// Groups of ranks that have not been waited for, so that their numbers cannot be another's; and all children.
void Keeper::signal_all(int signal) {
  for (const pid_t rank : ranks_) {
    if (rank > 0) ::kill(-rank, signal);
  }
  for (const pid_t child : children()) {
    if (std::find(ranks_.begin(), ranks_.end(), child) == ranks_.end()) ::kill(child, signal);
  }
}

void check(const LaunchOptions& options) {
  if (options.ranks < 1 || options.ranks > kMostRanks) {
    fail<ValueError>("launch", "-n is {}; from 1 to {} ranks can be launched", options.ranks, kMostRanks);
  }
  if (options.program.empty()) fail<ValueError>("launch", "a program to run is needed: launch -n N PROGRAM ARGS...");
  if (!(options.grace >= 0 && options.grace <= 86400)) {
    fail<ValueError>("launch", "--grace is {}; seconds from 0 to 86400 are allowed", options.grace);
  }
  for (const std::string& variable : options.env) {
    if (variable.find('=') == std::string::npos || variable.front() == '=') {
      fail<ValueError>("launch", "--env {} is not NAME=VALUE", quote(variable));
    }
  }
}

}  // namespace

int launch(const LaunchOptions& options) {
  check(options);
  const auto place = comm::numeric_address(options.host, 0);
  if (!place) fail<ValueError>("launch", "--host {} is no numeric address", quote(options.host));
  Descriptor listener = comm::listen_on(*place);
  std::fflush(nullptr);
  const sigset_t set = signals_we_take();
  sigset_t before;
  ::sigprocmask(SIG_BLOCK, &set, &before);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t launcher = ::getpid();
  const pid_t keeper = ::fork();
  if (keeper < 0) fail_system("start a process");
  if (keeper == 0) {
    begin_child(launcher, SIGTERM);
    int code = 1;
    try {
      code = Keeper(options, std::move(listener)).run();
    } catch (const std::exception& e) {
      print_message(e.what());
    }
    ::_exit(code);
  }
  listener.close();
  int status = 0;
  while (::waitpid(keeper, &status, WNOHANG) != keeper) {
    const int signal = ::sigwaitinfo(&set, nullptr);
    if (signal > 0 && signal != SIGCHLD) ::kill(keeper, signal);
  }
  // Killed, it leaves its orphans to us.
  for (std::vector<pid_t> left; !(left = children()).empty();) {
    for (const pid_t child : left) ::kill(child, SIGKILL);
    for (const pid_t child : left) ::waitpid(child, nullptr, 0);
  }
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  if (WIFSIGNALED(status)) print_message("launch: the process that keeps the ranks " + ending_of(status).text);
  return ending_of(status).code;
}

}  // namespace lamina::tools
