#include "tests/ops/incomplete/record.hpp"

template <lamina::Op O>
struct Use {};
template struct Use<lamina::Orphan>;
