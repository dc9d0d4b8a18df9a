// OpInfo: everything an op record says, without its type: what the test harness, the benchmarks and `lamina ops` read.
#pragma once

#include <memory>

#include "lamina/kernels/record.hpp"
#include "lamina/kernels/reference.hpp"

namespace lamina {

struct OpInfo {
  struct Case {
    std::string name;
    std::shared_ptr<const void> attrs;
    std::vector<SampleOperand> inputs;
  };
  const OpRecord* record;
  int outputs;  ///< -1: depends on the attributes
  Tolerance tolerance;
  /// The record has `static constexpr bool reads_part = true`: its cost says fewer bytes read than its inputs have.
  bool reads_part;
  /// The record has `static constexpr bool in_place = true`: see run_into().
  bool in_place;
  std::vector<Case> samples;
  ReferenceFunction reference;
  /// The reference on counting numbers; its FLOPs are in CountingReal::flops.
  void (*count)(const void* attrs, In<CountingReal> in, Out<CountingReal> out);
};

/// Every op of ops.def, in its order. Built on each call.
std::vector<OpInfo> all_ops();

}  // namespace lamina
