// Worlds to test collectives in: a group a thread over each transport.
#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "lamina/core/rng.hpp"
#include "lamina/dist/comm/group.hpp"
#include "lamina/dist/comm/transport/link_model.hpp"
#include "lamina/dist/comm/transport/shared_memory.hpp"
#include "lamina/dist/comm/transport/tcp.hpp"
#include "lamina/dist/comm/transport/threads.hpp"
#include "tests/comm/local_rendezvous.hpp"

namespace lamina::comm {

/// The transports a world of threads can have, by name.
inline std::vector<std::string> world_kinds() { return {"threads", "shm", "tcp", "link_model"}; }

inline std::vector<std::unique_ptr<Transport>> make_transports(const std::string& kind, int size) {
  if (kind == "shm") return shared_memory_transports(size);
  if (kind == "threads" || kind == "link_model") {
    std::vector<std::unique_ptr<Transport>> transports = thread_transports(size);
    for (auto& t : transports) {
      if (kind == "link_model") t = with_link_model(std::move(t), {20e-6, 2e9});
    }
    return transports;
  }
  std::vector<std::unique_ptr<LocalRendezvous>> meeting = LocalRendezvous::of(size);
  std::vector<std::unique_ptr<Transport>> transports(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      const auto r = static_cast<std::size_t>(rank);
      TcpOptions tcp;
      tcp.connections = 2;
      transports[r] = tcp_transport(*meeting[r], rank, size, tcp);
    });
  }
  for (std::thread& t : threads) t.join();
  return transports;
}

inline std::vector<Group> make_world(const std::string& kind, int size, const GroupOptions& options = {}) {
  std::vector<Group> groups;
  for (auto& t : make_transports(kind, size)) groups.emplace_back(std::move(t), options);
  return groups;
}

/// Runs f(group) on a thread a rank, and gives what each threw, or nothing.
using Failures = std::vector<std::exception_ptr>;
inline Failures try_on_all(std::vector<Group>& groups, const std::function<void(Group&)>& f) {
  Failures failures(groups.size());
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < groups.size(); ++r) {
    threads.emplace_back([&, r] {
      try {
        f(groups[r]);
      } catch (...) {
        failures[r] = std::current_exception();
      }
    });
  }
  for (std::thread& t : threads) t.join();
  return failures;
}

inline void on_all(std::vector<Group>& groups, const std::function<void(Group&)>& f) {
  for (const std::exception_ptr& e : try_on_all(groups, f)) {
    if (e) std::rethrow_exception(e);
  }
}

/// What a failure is and says: "Mismatch: group: rank ...". Empty for none.
inline std::string text_of(const std::exception_ptr& failure) {
  if (!failure) return "";
  try {
    std::rethrow_exception(failure);
  } catch (const PeerLost& e) {
    return std::string("PeerLost: ") + e.what();
  } catch (const Timeout& e) {
    return std::string("Timeout: ") + e.what();
  } catch (const Mismatch& e) {
    return std::string("Mismatch: ") + e.what();
  } catch (const std::exception& e) {
    return std::string("other: ") + e.what();
  }
}

/// Element i of rank r's vector: small integers, exact in every dtype's sums of up to 9 ranks (products: of 1 and 2).
inline double whole_number(int rank, std::int64_t i, Reduction reduction) {
  const auto mixed = static_cast<std::uint64_t>(i) * 2654435761u + static_cast<std::uint64_t>(rank) * 40503u;
  if (reduction == Reduction::product) return 1 + static_cast<double>((mixed >> 7) % 16 == 0);
  return static_cast<double>((mixed >> 7) % 13);
}

/// A vector of any dtype, from and to doubles.
class Values {
 public:
  Values(DType dtype, std::int64_t count)
      : dtype_(dtype), count_(count), bytes_(static_cast<std::size_t>(count) * size_of(dtype) + 8) {}
  void set(std::int64_t i, double value) {
    visit(dtype_, [&]<class T>() {
      T v;
      if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
        v = T(static_cast<float>(value));
      } else {
        v = static_cast<T>(value);
      }
      std::memcpy(at<T>(i), &v, sizeof v);
    });
  }
  double get(std::int64_t i) const {
    return visit(dtype_, [&]<class T>() {
      T v;
      std::memcpy(&v, const_cast<Values*>(this)->at<T>(i), sizeof v);
      if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>)
        return static_cast<double>(static_cast<float>(v));
      else
        return static_cast<double>(v);
    });
  }
  Buffer all() { return part(0, count_); }
  Buffer part(std::int64_t first, std::int64_t count) {
    return {bytes_.data() + static_cast<std::size_t>(first) * size_of(dtype_), count, dtype_};
  }
  std::span<const std::byte> bytes() const {
    return {bytes_.data(), static_cast<std::size_t>(count_) * size_of(dtype_)};
  }
  std::int64_t count() const { return count_; }

 private:
  template <class T>
  std::byte* at(std::int64_t i) {
    return bytes_.data() + static_cast<std::size_t>(i) * sizeof(T);
  }
  DType dtype_;
  std::int64_t count_;
  std::vector<std::byte> bytes_;
};

}  // namespace lamina::comm
