// A record that satisfies the concept Op, and with -DOMIT_<part> one that does not. A different name where the build
// wants it in ops.def's place.
#pragma once

#include "lamina/kernels/op.hpp"

namespace lamina {

struct Orphan {
  struct Attrs {};
#ifndef OMIT_NAME
  static constexpr std::string_view name = "orphan";
#endif
#ifndef OMIT_OUTPUTS
  static constexpr int outputs = 1;
#endif
#ifndef OMIT_INFER
  static Metas infer(const Attrs&, MetasIn in) { return {in[0]}; }
#endif
#ifndef OMIT_COST
  static Cost cost(const Attrs&, MetasIn in, MetasIn out) { return stream_cost(0, in, in); }
#endif
#ifndef OMIT_SAVES
  static constexpr Saves saves{};
#endif
#ifndef OMIT_VJP
  static Tensors vjp(const Attrs&, const Saved&, TensorsIn cotangents, Needs) { return {cotangents[0]}; }
#endif
#ifndef OMIT_REFERENCE
  template <class Real>
  static void reference(const Attrs&, In<Real>, Out<Real>) {}
#endif
#ifndef OMIT_SAMPLES
  static std::vector<Sample<Attrs>> samples() { return {}; }
#endif
#ifndef OMIT_TOLERANCE
  static constexpr Tolerance tolerance{};
#endif
};

}  // namespace lamina
