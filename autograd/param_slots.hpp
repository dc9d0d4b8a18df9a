// ParamSlots: which slot of a tape a parameter has. A hash table without deletion and without a node an entry, because
// every tape fills one. Not thread-safe.
#pragma once

#include <bit>
#include <cstdint>
#include <utility>

#include "lamina/core/inline_vector.hpp"

namespace lamina {

class Param;

class ParamSlots {
 public:
  /// Null when the parameter is unknown. Valid until the next insert.
  const int* find(const Param* param) const noexcept {
    if (table_.empty()) return nullptr;
    const auto& [key, slot] = table_[place_of(param)];
    return key == nullptr ? nullptr : &slot;
  }
  /// The parameter must be unknown.
  void insert(const Param* param, int slot) {
    if (2 * (size_ + 1) > table_.size()) grow();
    table_[place_of(param)] = {param, slot};
    ++size_;
  }

 private:
  // Where the parameter is, or would be.
  std::size_t place_of(const Param* param) const noexcept {
    const auto address = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(param));
    auto place = static_cast<std::size_t>(address * 0x9E3779B97F4A7C15u >> (65 - std::bit_width(table_.size())));
    while (table_[place].first != nullptr && table_[place].first != param) place = (place + 1) & (table_.size() - 1);
    return place;
  }
  void grow() {
    const Table old = std::exchange(table_, Table(table_.empty() ? 16 : 2 * table_.size()));
    for (const auto& entry : old) {
      if (entry.first != nullptr) table_[place_of(entry.first)] = entry;
    }
  }

  using Table = InlineVector<std::pair<const Param*, int>, 16>;
  Table table_;  // a power of two long, at most half full
  std::size_t size_ = 0;
};

}  // namespace lamina
