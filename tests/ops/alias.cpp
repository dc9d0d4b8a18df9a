#include "tests/ops/checks.hpp"

namespace lamina::harness {

namespace {

std::vector<const Tensor*> pointers(std::span<const Tensor> tensors) {
  std::vector<const Tensor*> refs;
  for (const Tensor& t : tensors) refs.push_back(&t);
  return refs;
}

// Values, gradients, state -> values, state: the output's own input.
std::size_t input_of(const Problem& p, std::size_t output) {
  const std::size_t values = p.in.size() - p.out.size();
  return output < values ? output : output + values;
}

bool fits_in_place(const Problem& p) {
  if (p.in.size() < p.out.size()) return false;
  for (std::size_t o = 0; o < p.out.size(); ++o) {
    if (!(p.in[input_of(p, o)].meta == p.out[o])) return false;
  }
  return true;
}

template <class Found>
void check_in_place(const OpInfo& op, const Problem& p, const Device& device, const Tensors& fresh, Found&& found) {
  std::vector<Tensor> in, out;
  for (const Array& a : p.in) in.push_back(tensor_of(device, a));
  std::vector<const Tensor*> refs = pointers(in);
  for (std::size_t o = 0; o < p.out.size(); ++o) out.push_back(in[input_of(p, o)]);
  run_into(*op.record, p.attrs, refs, out, true);
  for (std::size_t o = 0; o < out.size(); ++o) {
    if (!(array_of(out[o]) == array_of(fresh[o]))) found(fmt::format("output {}: other bits in place", o));
  }
}

}  // namespace

Findings check_alias(const OpInfo& op, Problems problems, const Devices& on) {
  Findings findings;
  const Device& device = on.first;
  for (const Problem& p : problems) {
    if (!p.name.ends_with(" f32") || p.in.empty()) continue;
    auto found = [&](std::string text) {
      findings.push_back({"alias", std::string(op.record->name), p.name, std::move(text)});
    };
    auto inputs_changed = [&](std::span<const Tensor> in) {
      for (std::size_t i = 0; i < in.size(); ++i) {
        if (!(array_of(in[i]) == p.in[i])) found(fmt::format("input {} was written", i));
      }
    };
    try {
      std::vector<Tensor> in, out;
      for (const Array& a : p.in) in.push_back(tensor_of(device, a));
      for (const Meta& m : p.out) out.push_back(Tensor::empty(device, m.shape, m.dtype));
      const Tensors fresh = run(*op.record, p.attrs, pointers(in));
      run_into(*op.record, p.attrs, pointers(in), out);
      inputs_changed(in);
      for (std::size_t o = 0; o < out.size(); ++o) {
        if (!(array_of(out[o]) == array_of(fresh[o]))) found(fmt::format("output {}: run_into gives other bits", o));
      }
      if (op.in_place && fits_in_place(p)) check_in_place(op, p, on.second, fresh, found);
      for (std::size_t i = 0; i < in.size(); ++i) {
        for (std::size_t o = 0; o < out.size(); ++o) {
          const auto in_bytes = p.in[i].meta.bytes(), out_bytes = p.out[o].bytes();
          // On the same elements, and side by side in one storage.
          for (const std::int64_t offset : {std::int64_t{0}, (in_bytes + 63) / 64 * 64}) {
            auto storage = make_ref<Storage>(
                device.state(), static_cast<std::size_t>(offset + std::max(in_bytes, out_bytes)), device.queue());
            Layout beside(p.out[o].shape);
            beside.offset = offset / static_cast<std::int64_t>(size_of(p.out[o].dtype));
            std::vector<Tensor> ins = in, outs;
            for (const Meta& m : p.out) outs.push_back(Tensor::empty(device, m.shape, m.dtype));
            ins[i] = Tensor(storage, Layout(p.in[i].meta.shape), p.in[i].meta.dtype);
            if (in_bytes > 0) {
              device.queue().copy_in(ins[i].raw(), p.in[i].bytes.data(), static_cast<std::size_t>(in_bytes));
            }
            outs[o] = Tensor(std::move(storage), beside, p.out[o].dtype);
            try {
              run_into(*op.record, p.attrs, pointers(ins), outs);
              found(fmt::format("output {} in the storage of operand {} at byte {}: no AliasError", o, i, offset));
            } catch (const AliasError&) {
            }
            inputs_changed(ins);
          }
        }
      }
    } catch (const MissingKernel&) {
      if (!on.partial) found(current_exception_text());
    } catch (...) {
      found(current_exception_text());
    }
  }
  return findings;
}

}  // namespace lamina::harness
