#include "lamina/kernels/op_info.hpp"

#include "lamina/kernels/op_list.hpp"

namespace lamina {

namespace {

template <class O>
constexpr bool reads_part() {
  if constexpr (requires { O::reads_part; }) {
    return O::reads_part;
  } else {
    return false;
  }
}

template <class O>
constexpr bool in_place() {
  if constexpr (requires { O::in_place; }) {
    return O::in_place;
  } else {
    return false;
  }
}

template <Op O>
OpInfo info() {
  using Attrs = typename O::Attrs;
  OpInfo info{&record_of<O>,
              O::outputs,
              O::tolerance,
              reads_part<O>(),
              in_place<O>(),
              {},
              &reference_erased<O>,
              [](const void* attrs, In<CountingReal> in, Out<CountingReal> out) {
                O::template reference<CountingReal>(*static_cast<const Attrs*>(attrs), in, out);
              }};
  for (Sample<Attrs>& s : O::samples()) {
    info.samples.push_back({std::move(s.name), std::make_shared<const Attrs>(std::move(s.attrs)), std::move(s.inputs)});
  }
  return info;
}

}  // namespace

std::vector<OpInfo> all_ops() {
  std::vector<OpInfo> ops;
#define LAMINA_INFO(O) ops.push_back(info<O>());
  LAMINA_FOR_EACH_OP(LAMINA_INFO)
#undef LAMINA_INFO
  return ops;
}

}  // namespace lamina
