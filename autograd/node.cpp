#include "lamina/autograd/node.hpp"

#include <algorithm>

namespace lamina {

namespace {

template <class Attrs>
OpRecord local_record(std::string_view name, Tensors (*vjp)(const void*, const Saved&, TensorsIn, Needs),
                      bool unsplit) {
  OpRecord r{};
  r.id = -1;
  r.name = name;
  r.saves.unsplit = unsplit;
  r.vjp = vjp;
  r.attrs_size = sizeof(Attrs);
  r.attrs_align = alignof(Attrs);
  r.copy_attrs = [](void* to, const void* from) { ::new (to) Attrs(*static_cast<const Attrs*>(from)); };
  if constexpr (!std::is_trivially_destructible_v<Attrs>) {
    r.destroy_attrs = [](void* attrs) { std::destroy_at(static_cast<Attrs*>(attrs)); };
  }
  return r;
}

}  // namespace

const std::int64_t* pack_metas(Arena& arena, std::span<const Tensor* const> inputs, std::span<const Tensor> outputs) {
  std::size_t words = inputs.size() + outputs.size();
  for (const Tensor* t : inputs) words += static_cast<std::size_t>(t->shape().rank());
  for (const Tensor& t : outputs) words += static_cast<std::size_t>(t.shape().rank());
  auto* const packed = static_cast<std::int64_t*>(arena.allocate(words * sizeof(std::int64_t), alignof(std::int64_t)));
  std::int64_t* to = packed;
  auto pack = [&](const Tensor& t) {
    *to++ = static_cast<std::int64_t>(t.dtype()) << 8 | t.shape().rank();
    to = std::copy(t.shape().begin(), t.shape().end(), to);
  };
  for (const Tensor* t : inputs) pack(*t);
  for (const Tensor& t : outputs) pack(t);
  return packed;
}

InlineVector<Meta, 6> unpack_metas(const std::int64_t* packed, std::size_t count) {
  InlineVector<Meta, 6> metas;
  metas.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto rank = static_cast<std::size_t>(*packed & 0xFF);
    const auto dtype = static_cast<DType>(*packed++ >> 8);
    metas.push_back({Shape(std::span(packed, rank)), dtype});
    packed += rank;
  }
  return metas;
}

const OpRecord& custom_record() {
  static const OpRecord record = local_record<CustomOp>(
      "custom",
      [](const void* attrs, const Saved&, TensorsIn cotangents, Needs needs) {
        Tensors dense;  // what user code reads on the host
        dense.reserve(cotangents.size());
        for (const Tensor& t : cotangents) dense.push_back(t.defined() ? contiguous(t) : t);
        return (*static_cast<const CustomOp*>(attrs)->vjp)(dense, needs);
      },
      true);
  return record;
}

const OpRecord& reshape_record() {
  static const OpRecord record = local_record<NoAttrs>(
      "reshape",
      [](const void*, const Saved& saved, TensorsIn cotangents, Needs) -> Tensors {
        return {contiguous(cotangents[0]).view(saved.input_meta(0).shape)};
      },
      false);
  return record;
}

}  // namespace lamina
