#include "lamina/dist/comm/rendezvous/hello.hpp"

#include <unistd.h>

#include <algorithm>
#include <exception>

#include "lamina/core/error.hpp"
#include "lamina/core/io/bytes.hpp"
#include "lamina/dist/comm/transport/address.hpp"

namespace lamina::comm {

// ---- wire ----

void put_number(std::string& to, std::uint64_t value) {
  std::byte bytes[sizeof value];
  store_little(bytes, value);
  to.append(reinterpret_cast<const char*>(bytes), sizeof bytes);
}

void put_text(std::string& to, std::string_view text) {
  put_number(to, text.size());
  to += text;
}

std::uint64_t WireReader::number() noexcept {
  ok_ = ok_ && left_.size() >= sizeof(std::uint64_t);
  if (!ok_) return 0;
  const auto value = load_little<std::uint64_t>(reinterpret_cast<const std::byte*>(left_.data()));
  left_.remove_prefix(sizeof value);
  return value;
}

std::string_view WireReader::text() noexcept {
  const std::uint64_t size = number();
  ok_ = ok_ && size <= left_.size();
  if (!ok_) return {};
  const std::string_view out = left_.substr(0, size);
  left_.remove_prefix(size);
  return out;
}

std::string encode_blobs(const std::vector<std::string>& blobs) {
  std::size_t bytes = 0;
  for (const std::string& blob : blobs) bytes += sizeof(std::uint64_t) + blob.size();
  std::string out;
  out.reserve(bytes);
  for (const std::string& blob : blobs) put_text(out, blob);
  return out;
}

std::vector<std::string> decode_blobs(std::string_view bytes, int size) {
  WireReader reader(bytes);
  std::vector<std::string> out;
  for (int r = 0; r < size && reader.ok(); ++r) out.emplace_back(reader.text());
  if (!reader.done()) out.clear();
  return out;
}

// ---- hello ----

std::string Hello::name() const { return fmt::format("rank {} ({})", rank, who); }

Hello hello_of(const Meeting& meeting, std::chrono::steady_clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return {.rank = meeting.rank,
          .size = meeting.size,
          .left = std::max(left, std::chrono::milliseconds(0)),
          .job = meeting.job,
          .who = fmt::format("pid {} on {}", ::getpid(), this_host().name)};
}

std::string encode(const Hello& hello) {
  std::string out;
  put_number(out, static_cast<std::uint64_t>(hello.rank));
  put_number(out, static_cast<std::uint64_t>(hello.size));
  put_number(out, static_cast<std::uint64_t>(hello.left.count()));
  put_text(out, hello.job);
  put_text(out, hello.who);
  return out;
}

std::optional<Hello> decode_hello(std::string_view bytes, std::uint32_t version) {
  WireReader reader(bytes);
  Hello hello;
  hello.version = version;
  hello.rank = static_cast<std::int64_t>(reader.number());
  hello.size = static_cast<std::int64_t>(reader.number());
  const auto left = static_cast<std::int64_t>(reader.number());
  hello.job = reader.text();
  hello.who = reader.text();
  constexpr std::int64_t kYear = std::int64_t{366} * 24 * 3600 * 1000;
  hello.left = std::chrono::milliseconds(left < 0 ? 0 : std::min(left, kYear));
  const bool whole = version == kProtocolVersion ? reader.done() : reader.ok();
  if (!whole || hello.rank < 0 || hello.size < 1 || hello.rank >= hello.size) return std::nullopt;
  return hello;
}

std::optional<std::string> other_job(const Hello& host, const Hello& guest) {
  if (host.job == guest.job) return std::nullopt;
  return fmt::format("{} is of job {}, {} of job {}", host.name(), quote(host.job), guest.name(), quote(guest.job));
}

std::optional<std::string> misfit(const Hello& host, const Hello& guest) {
  if (host.version != guest.version) {
    return fmt::format("{} speaks version {} of the protocol, {} version {}", host.name(), host.version, guest.name(),
                       guest.version);
  }
  if (host.size != guest.size) {
    return fmt::format("{} belongs to a world of {} ranks, {} to one of {}", host.name(), host.size, guest.name(),
                       guest.size);
  }
  if (host.rank == guest.rank) return came_twice(host, guest);
  return std::nullopt;
}

std::string came_twice(const Hello& first, const Hello& second) {
  return fmt::format("two processes are rank {}: {} and {}", first.rank, first.who, second.who);
}

std::string list_ranks(std::span<const int> ranks) {
  constexpr std::size_t kMost = 16;
  std::string out = ranks.size() == 1 ? "rank" : "ranks";
  for (std::size_t i = 0; i < std::min(ranks.size(), kMost); ++i) {
    const bool last = i + 1 == ranks.size() && i > 0;
    out += fmt::format("{} {}", i == 0 ? "" : last ? " and" : ",", ranks[i]);
  }
  return ranks.size() > kMost ? out + fmt::format(", ... ({} ranks)", ranks.size()) : out;
}

// ---- verdicts ----

std::string encode(const Verdict& verdict) {
  std::string out;
  put_number(out, static_cast<std::uint64_t>(verdict.kind));
  put_text(out, verdict.text);
  return out;
}

std::optional<Verdict> decode_verdict(std::string_view bytes) {
  WireReader reader(bytes);
  const std::uint64_t kind = reader.number();
  Verdict verdict{.text = std::string(reader.text())};
  if (!reader.done() || kind > static_cast<std::uint64_t>(Verdict::Kind::peer_lost)) return std::nullopt;
  verdict.kind = static_cast<Verdict::Kind>(kind);
  return verdict;
}

void raise(const Verdict& verdict) {
  switch (verdict.kind) {
    case Verdict::Kind::mismatch: fail<Mismatch>("rendezvous", "{}", verdict.text);
    case Verdict::Kind::timeout: fail<Timeout>("rendezvous", "{}", verdict.text);
    case Verdict::Kind::peer_lost: break;
  }
  fail<PeerLost>("rendezvous", "{}", verdict.text);
}

std::vector<std::string> CheckedRendezvous::exchange(const std::string& blob) {
  if (failure_) std::rethrow_exception(failure_);
  if (blob.size() > kMaxBlob) {
    fail<ValueError>("rendezvous", "a blob of {} bytes; at most {} are allowed", blob.size(), kMaxBlob);
  }
  try {
    return meet(blob);
  } catch (...) {
    failure_ = std::current_exception();
    throw;
  }
}

}  // namespace lamina::comm
