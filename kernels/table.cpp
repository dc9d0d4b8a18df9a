#include "lamina/kernels/table.hpp"

#include <algorithm>

namespace lamina {

void KernelTable::prefer(std::string_view spec) {
  while (!spec.empty()) {
    const auto comma = spec.find(',');
    const std::string_view name = spec.substr(0, comma);
    spec = comma == std::string_view::npos ? std::string_view{} : spec.substr(comma + 1);
    if (name.empty()) continue;
    auto matches = [&](const Variant* v) {
      return v->name == name || (name.back() == '.' && v->name.substr(0, name.size()) == name);
    };
    bool found = false;
    std::string known;
    const std::string_view op = name.substr(0, name.find('.'));
    for (Entry& entry : entries_) {
      for (const Variant* v : entry.all) {
        if (v->name.substr(0, v->name.find('.')) == op)
          known += fmt::format("{}{}", known.empty() ? "" : ", ", v->name);
      }
      found = std::any_of(entry.usable.begin(), entry.usable.end(), matches) || found;
      std::stable_partition(entry.usable.begin(), entry.usable.end(), matches);
    }
    if (!found) {
      fail<ValueError>("kernel preference", "no variant '{}' is usable here; variants of {}: {}", name, op,
                       known.empty() ? "none, there is no such op" : known);
    }
  }
}

}  // namespace lamina
