// In place of the generated header: the one op is Orphan.
#pragma once

namespace lamina {

struct Orphan;
inline constexpr int kOpCount = 1;
template <class T>
struct OpId;
template <>
struct OpId<Orphan> {
  static constexpr int value = 0;
};

}  // namespace lamina
