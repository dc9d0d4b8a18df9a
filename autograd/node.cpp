#include "lamina/autograd/node.hpp"

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

const OpRecord& custom_record() {
  static const OpRecord record = local_record<CustomOp>(
      "custom",
      [](const void* attrs, const Saved&, TensorsIn cotangents, Needs needs) {
        return (*static_cast<const CustomOp*>(attrs)->vjp)(cotangents, needs);
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

Tensor ones_like(const Tensor& t) {
  const std::vector<float> ones(static_cast<std::size_t>(t.count()), 1.0f);
  const Tensor f32 = Tensor::from(t.device(), t.shape(), ones);
  return t.dtype() == DType::f32 ? f32 : cast(f32, t.dtype());
}

}  // namespace lamina
