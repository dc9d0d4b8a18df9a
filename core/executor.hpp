// Executor: who runs the blocks of a loop. The engine's own is ThreadPool; a host application can inject its own.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

namespace lamina {

/// A reference to a callable `void(std::int64_t block)`. Must not outlive the callable.
class BlockFunction {
 public:
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, BlockFunction>)
  BlockFunction(F&& f) noexcept  // NOLINT: implicit on purpose
      : object_(const_cast<void*>(static_cast<const void*>(&f))),
        call_([](void* object, std::int64_t block) { (*static_cast<std::remove_reference_t<F>*>(object))(block); }) {}
  void operator()(std::int64_t block) const { call_(object_, block); }

 private:
  void* object_;
  void (*call_)(void*, std::int64_t);
};

/// Runs numbered blocks, in any order and on any threads. What a block computes may depend on its number only, never
/// on the thread or on how many there are: this is what makes results equal for every thread count.
class Executor {
 public:
  virtual ~Executor() = default;
  /// How many blocks can run at the same time (>= 1).
  virtual int width() const noexcept = 0;
  /// Runs blocks 0..count-1 and returns when all are done. The first exception thrown by a block is rethrown here, the
  /// blocks not yet begun are skipped. Nested calls from inside a block run on the calling thread.
  virtual void run(std::int64_t count, BlockFunction block) = 0;
};

}  // namespace lamina
