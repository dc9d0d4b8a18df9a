// What a tape records, and the records of the operations that are no kernels. Internal to autograd.
#pragma once

#include "lamina/autograd/tape.hpp"
#include "lamina/kernels/copy/op.hpp"

namespace lamina {

/// One recorded op. Lives in the tape's arena; its arrays too.
struct Tape::Node {
  const OpRecord* op = nullptr;
  void* attrs = nullptr;
  std::uint32_t inputs = 0;
  std::uint32_t outputs = 0;
  std::uint64_t wantable = 0;           // operands whose gradient may be wanted
  int* in_slots = nullptr;              // -1: a constant that is no var
  int first_output = 0;                 // slot of output 0; the others follow
  const std::int64_t* metas = nullptr;  // of inputs, then outputs, packed
  Tensor* saved_inputs = nullptr;       // null: none
  Tensor* saved_outputs = nullptr;

  Node() = default;
  Node(const Node&) = delete;
  ~Node() {
    if (op != nullptr && op->destroy_attrs != nullptr) op->destroy_attrs(attrs);
    if (saved_inputs != nullptr) std::destroy_n(saved_inputs, inputs);
    if (saved_outputs != nullptr) std::destroy_n(saved_outputs, outputs);
  }
};

struct NoAttrs {};

struct CustomOp {
  std::shared_ptr<const Tape::CustomVjp> vjp;
};

/// A Meta has room for 8 extents and most tensors have 2 to 4, so a node keeps them packed: a word of dtype and rank,
/// then the extents.
const std::int64_t* pack_metas(Arena& arena, std::span<const Tensor* const> inputs, std::span<const Tensor> outputs);
InlineVector<Meta, 6> unpack_metas(const std::int64_t* packed, std::size_t count);

/// The record of a custom node: its attributes are the closure.
const OpRecord& custom_record();
/// The record of reshape: a view forward and backward.
const OpRecord& reshape_record();

}  // namespace lamina
