#include "lamina/dist/comm/message.hpp"

#include <fmt/core.h>

namespace lamina::comm {

std::string_view name_of(Collective op) noexcept {
  constexpr std::string_view names[] = {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all",
                                        "gather",     "scatter",        "barrier",    "message"};
  return names[static_cast<int>(op)];
}

std::string_view name_of(Reduction reduction) noexcept {
  constexpr std::string_view names[] = {"sum", "mean", "min", "max", "product"};
  return names[static_cast<int>(reduction)];
}

std::string_view name_of(Algorithm algorithm) noexcept {
  constexpr std::string_view names[] = {"automatic",  "ring",  "halving_doubling", "doubling", "tree",
                                        "rank_order", "direct"};
  return names[static_cast<int>(algorithm)];
}

std::string to_string(const Signature& what) {
  if (what.op == Collective::barrier) return fmt::format("barrier #{}", what.sequence);
  if (what.op == Collective::point_to_point) {
    return fmt::format("message of {} {}, tag {}", what.count, name_of(what.dtype), what.root);
  }
  std::string text = fmt::format("{} #{} of {} {}", name_of(what.op), what.sequence, what.count, name_of(what.dtype));
  switch (what.op) {
    case Collective::all_reduce:
    case Collective::reduce_scatter: text += fmt::format(", {}", name_of(what.reduction)); break;
    case Collective::broadcast:
    case Collective::gather:
    case Collective::scatter: text += fmt::format(", root {}", what.root); break;
    default: break;
  }
  return text + fmt::format(", by {}", name_of(what.algorithm));
}

bool is_valid(const MessageHeader& header) noexcept {
  const Signature& what = header.what;
  return what.op <= Collective::point_to_point && static_cast<int>(what.dtype) < kDTypeCount &&
         what.reduction <= Reduction::product && what.algorithm <= Algorithm::direct && what.count >= 0 &&
         header.bytes >= 0;
}

}  // namespace lamina::comm
