// KernelTable: the variants a device has of each op, best first. Built once when a device is made; read-only after.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "lamina/kernels/record.hpp"
#include "lamina/kernels/variant.hpp"

namespace lamina {

class KernelTable {
 public:
  struct Entry {
    std::vector<const Variant*> usable;  ///< may be chosen on this machine, in the order of preference
    std::vector<const Variant*> all;     ///< everything compiled in, for tests and the support table
    std::string_view missing;            ///< why there is no kernel, when `all` is empty
  };

  KernelTable() : entries_(kOpCount) {}
  Entry& entry(int op) { return entries_[static_cast<std::size_t>(op)]; }
  const Entry& entry(int op) const { return entries_[static_cast<std::size_t>(op)]; }

  /// Puts the variants named first: `spec` is a comma-separated list of names, or of prefixes of names ending in '.'.
  /// Throws ValueError for a name that no op has, naming the op's variants when the op is known.
  void prefer(std::string_view spec);

 private:
  std::vector<Entry> entries_;
};

}  // namespace lamina
