// OpRecord: an op record without its type, so that dispatch and autograd are compiled once and not once per op.
#pragma once

#include <new>

#include "lamina/kernels/op.hpp"
#include "lamina/kernels/op_ids.hpp"  // generated from ops.def: OpId<T>, kOpCount

namespace lamina {

struct OpRecord {
  int id;
  std::string_view name;
  Saves saves;
  Metas (*infer)(const void* attrs, MetasIn in);
  Cost (*cost)(const void* attrs, MetasIn in, MetasIn out);
  Tensors (*vjp)(const void* attrs, const Saved& saved, TensorsIn cotangents, Needs needs);
  std::size_t attrs_size;
  std::size_t attrs_align;
  void (*copy_attrs)(void* to, const void* from);
  void (*destroy_attrs)(void* attrs);  ///< null when trivial
};

template <Op O>
inline constexpr OpRecord record_of = {
    OpId<O>::value,
    O::name,
    O::saves,
    [](const void* attrs, MetasIn in) { return O::infer(*static_cast<const typename O::Attrs*>(attrs), in); },
    [](const void* attrs, MetasIn in, MetasIn out) {
      return O::cost(*static_cast<const typename O::Attrs*>(attrs), in, out);
    },
    [](const void* attrs, const Saved& saved, TensorsIn cotangents, Needs needs) {
      return O::vjp(*static_cast<const typename O::Attrs*>(attrs), saved, cotangents, needs);
    },
    sizeof(typename O::Attrs),
    alignof(typename O::Attrs),
    [](void* to, const void* from) { ::new (to) typename O::Attrs(*static_cast<const typename O::Attrs*>(from)); },
    std::is_trivially_destructible_v<typename O::Attrs>
        ? nullptr
        : +[](void* attrs) { std::destroy_at(static_cast<typename O::Attrs*>(attrs)); },
};

}  // namespace lamina
