#include "lamina/autograd/param.hpp"

#include <algorithm>

namespace lamina {

namespace {

// Every distinct lock, taken in address order so that two threads never wait for each other.
std::vector<std::unique_lock<std::mutex>> lock_all(std::vector<std::mutex*> mutexes) {
  std::sort(mutexes.begin(), mutexes.end(), std::less<>{});
  mutexes.erase(std::unique(mutexes.begin(), mutexes.end()), mutexes.end());
  std::vector<std::unique_lock<std::mutex>> locks;
  locks.reserve(mutexes.size());
  for (std::mutex* mutex : mutexes) locks.emplace_back(*mutex);
  return locks;
}

}  // namespace

Param::Current Param::current() const {
  std::lock_guard guard(*lock_);
  return {value_, version_};
}

Tensor Param::value() const {
  std::lock_guard guard(*lock_);
  return value_;
}

std::uint64_t Param::version() const {
  std::lock_guard guard(*lock_);
  return version_;
}

Meta Param::meta() const {
  std::lock_guard guard(*lock_);
  return value_.meta();
}

void Param::set(Tensor value) {
  std::lock_guard guard(*lock_);
  if (!(value.shape() == value_.shape())) {
    fail<ShapeError>("param", "shape {} does not match {}", to_string(value.shape()), to_string(value_.shape()));
  }
  if (value.dtype() != value_.dtype()) {
    fail<DTypeError>("param", "dtype {} does not match {}", name_of(value.dtype()), name_of(value_.dtype()));
  }
  value_ = std::move(value);
  ++version_;
}

Tensor Param::derived(const std::string& key, const std::function<Tensor(const Tensor&)>& derive) const {
  std::lock_guard guard(*lock_);
  auto& [version, tensor] = derived_[key];
  if (!tensor.defined() || version != version_) {
    tensor = derive(value_);
    version = version_;
  }
  return tensor;
}

Snapshot snapshot(std::span<Param* const> params) {
  std::vector<std::mutex*> mutexes;
  for (const Param* p : params) mutexes.push_back(p->lock_.get());
  const auto locks = lock_all(std::move(mutexes));
  Snapshot s;
  for (const Param* p : params) {
    s.values.push_back(p->value_);
    s.versions.push_back(p->version_);
  }
  return s;
}

void update(std::span<Param* const> params, const std::function<void(std::span<Tensor>)>& write) {
  std::vector<std::mutex*> mutexes;
  for (const Param* p : params) mutexes.push_back(p->lock_.get());
  const auto locks = lock_all(std::move(mutexes));
  // Moved out, so that a value nobody else holds is solely owned while it is written.
  std::vector<Tensor> values;
  values.reserve(params.size());
  for (Param* p : params) values.push_back(std::move(p->value_));
  auto give_back = [&] {
    for (std::size_t i = 0; i < params.size(); ++i) params[i]->value_ = std::move(values[i]);
  };
  try {
    write(values);
  } catch (...) {
    give_back();
    throw;
  }
  give_back();
  for (Param* p : params) ++p->version_;
}

void share_lock(std::span<Param* const> params) {
  if (params.empty()) return;
  for (Param* p : params) p->lock_ = params[0]->lock_;
}

}  // namespace lamina
