// Param: a trainable tensor that is updated, version after version. It is the only mutable value of a model.
//
// Thread-safety: handles are given out by value() and snapshot() under a lock, so that an evaluation thread may read
// while an optimiser writes; parameters that share a lock (share_lock) are read and written as one.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "lamina/core/tensor.hpp"

namespace lamina {

struct Snapshot;

class Param {
 public:
  explicit Param(Tensor value) : lock_(std::make_shared<std::mutex>()), value_(std::move(value)) {}
  Param(const Param&) = delete;
  Param& operator=(const Param&) = delete;

  struct Current {
    Tensor value;
    std::uint64_t version;
  };
  /// The value and the version it is, at one moment.
  Current current() const;
  /// A handle on the current version. While it lives, an update makes a new buffer instead of writing this one.
  Tensor value() const;
  /// Counts updates.
  std::uint64_t version() const;
  Meta meta() const;

  /// Replaces the value: a new version. Throws ShapeError or DTypeError when the meta differs.
  void set(Tensor value);

  /// A tensor derived from the current version (a cast, a transpose), computed once a version and shared by all who
  /// ask with the same key.
  Tensor derived(const std::string& key, const std::function<Tensor(const Tensor&)>& derive) const;

 private:
  friend Snapshot snapshot(std::span<Param* const> params);
  friend void update(std::span<Param* const> params, const std::function<void(std::span<Tensor>)>& write);
  friend void share_lock(std::span<Param* const> params);

  std::shared_ptr<std::mutex> lock_;
  Tensor value_;
  std::uint64_t version_ = 0;
  mutable std::map<std::string, std::pair<std::uint64_t, Tensor>> derived_;
};

/// The values of several parameters at one moment, and their versions.
struct Snapshot {
  std::vector<Tensor> values;
  std::vector<std::uint64_t> versions;
};

/// All parameters under their locks at once: never a mixture of versions of parameters that share a lock.
Snapshot snapshot(std::span<Param* const> params);

/// Writes a new version of all parameters under their locks. `write` gets the value handles: it writes through those
/// that are sole owners, and replaces the others by new tensors. If it throws, versions do not change.
void update(std::span<Param* const> params, const std::function<void(std::span<Tensor>)>& write);

/// Makes the parameters one group: read and updated as one. Call before other threads see them.
void share_lock(std::span<Param* const> params);

}  // namespace lamina
