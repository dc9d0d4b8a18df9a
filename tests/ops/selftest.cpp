// The harness against kernels and records that are wrong on purpose: each fault must be found by its check, and the
// same check must find nothing in the original. Faults are planted in copies of gelu's and add's entries.
#include <gtest/gtest.h>

#include <cstring>

#include "lamina/kernels/permute/op.hpp"
#include "tests/ops/checks.hpp"

namespace lamina::harness {
namespace {

const OpInfo& find_op(std::string_view name) {
  static const std::vector<OpInfo> all = all_ops();
  for (const OpInfo& op : all) {
    if (op.record->name == name) return op;
  }
  throw std::runtime_error("no such op");
}

const Variant& find_variant(const OpInfo& op, std::string_view name, const Devices& on = Devices::cpu()) {
  for (const Variant* v : variants_of(op, on)) {
    if (v->name == name) return *v;
  }
  throw std::runtime_error("no such variant");
}

// The kernel that a planted one calls before it does wrong.
const Variant* honest = nullptr;
const OpRecord* honest_record = nullptr;
int calls = 0;

template <class T>
T& element(const Operand& o, std::int64_t i) {
  return o.as<T>()[i];
}

// A copy of honest's variant whose launch is `fault(in, out, executor, run)`; run() does the honest work.
template <class Fault>
Variant planted(Fault) {
  Variant v = *honest;
  v.launch = [](const void* attrs, Operands in, Operands out, Executor& executor, auto&... rest) {
    auto run = [&](Operands given = {}) { honest->launch(attrs, given.empty() ? in : given, out, executor, rest...); };
    Fault{}(in, out, executor, run);
  };
  return v;
}

class SelfTest : public ::testing::Test {
 protected:
  SelfTest() {
    honest = &find_variant(gelu, "gelu.cpu.vector.f32.baseline");
    honest_record = gelu.record;
    calls = 0;
    problems_ = problems_of(gelu);
  }
  Problems problems() const { return problems_; }

  static void expect_found(const Findings& findings, std::string_view text) {
    for (const Finding& f : findings) {
      if (f.text.find(text) != std::string::npos) return;
    }
    std::string all;
    for (const Finding& f : findings) all += "\n  " + to_string(f);
    ADD_FAILURE() << "no finding says \"" << text << "\"; found:" << (all.empty() ? " nothing" : all);
  }
  static void expect_none(const Findings& findings) {
    for (const Finding& f : findings) ADD_FAILURE() << to_string(f);
  }

  // An op whose record is gelu's with one part replaced.
  static OpInfo with_record(const OpInfo& op, const OpRecord& record) {
    OpInfo changed = op;
    changed.record = &record;
    return changed;
  }

  const OpInfo& gelu = find_op("gelu");
  std::vector<Problem> problems_;
};

// What a kernel can do wrong.

TEST_F(SelfTest, honest_kernel_passes_every_check) {
  expect_none(check_forward(gelu, *honest, problems()));
  expect_none(check_guard(gelu, *honest, problems()));
  expect_none(check_layout(gelu, *honest, problems()));
  expect_none(check_threads(gelu, *honest, problems()));
  expect_none(check_determinism(gelu, *honest, problems(), 20));
  const Variant* variants[] = {honest};
  expect_none(check_empty(gelu, variants));
  expect_none(check_errors(gelu, variants));
}

TEST_F(SelfTest, honest_record_passes_every_check) {
  expect_none(check_reference(gelu, problems()));
  expect_none(check_cost(gelu, problems()));
  expect_none(check_counts(gelu, problems()));
  expect_none(check_alias(gelu, problems()));
  expect_none(check_gradient(gelu));
  EXPECT_TRUE(has_gradient(gelu));
  EXPECT_FALSE(has_gradient(find_op("gelu_grad")));
}

TEST_F(SelfTest, corrupted_element) {
  const Variant v = planted([](Operands, Operands out, Executor&, auto run) {
    run();
    if (out[0].count() > 0) element<float>(out[0], out[0].count() / 2) += 1e-3f;
  });
  expect_found(check_forward(gelu, v, problems()), "1 of 120 beyond");
}

TEST_F(SelfTest, corrupted_element_in_a_reference_of_integers) {
  const OpInfo& copy = find_op("copy");
  honest = &find_variant(copy, "copy.cpu.rows");
  const Variant v = planted([](Operands, Operands out, Executor&, auto run) {
    run();
    if (out[0].dtype == DType::i64 && out[0].count() > 0) element<std::int64_t>(out[0], 3) += 1;
  });
  expect_found(check_forward(copy, v, problems_of(copy)), "reference");
}

TEST_F(SelfTest, nan) {
  const Variant v = planted([](Operands, Operands out, Executor&, auto run) {
    run();
    if (out[0].count() > 0) element<float>(out[0], 0) = std::numeric_limits<float>::quiet_NaN();
  });
  expect_found(check_forward(gelu, v, problems()), "got nan");
}

TEST_F(SelfTest, infinity) {
  const Variant v = planted([](Operands, Operands out, Executor&, auto run) {
    run();
    if (out[0].count() > 0) element<float>(out[0], 0) = std::numeric_limits<float>::infinity();
  });
  expect_found(check_forward(gelu, v, problems()), "got inf");
}

TEST_F(SelfTest, variant_that_no_sample_reaches) {
  Variant v = *honest;
  v.supports = [](const void*, Operands, Operands) { return Support::no("never"); };
  expect_found(check_forward(gelu, v, problems()), "no sample is supported");
}

TEST_F(SelfTest, exception) {
  const Variant v = planted([](Operands, Operands, Executor&, auto) { throw std::runtime_error("broken"); });
  expect_found(check_forward(gelu, v, problems()), "broken");
  expect_found(check_guard(gelu, v, problems()), "broken");
}

TEST_F(SelfTest, unwritten_element) {
  const Variant v = planted([](Operands, Operands out, Executor&, auto run) {
    const std::int64_t last = out[0].count() - 1;
    if (last < 0) return;
    const float before = element<float>(out[0], last);
    run();
    element<float>(out[0], last) = before;
  });
  expect_found(check_guard(gelu, v, problems()), "not written");
  expect_found(check_forward(gelu, v, problems()), "nan");
}

TEST_F(SelfTest, adds_to_what_the_output_held) {
  const Variant v = planted([](Operands, Operands out, Executor&, auto run) {
    if (out[0].count() == 0) return;
    const float before = element<float>(out[0], 0);
    run();
    element<float>(out[0], 0) += before;
  });
  expect_found(check_guard(gelu, v, problems()), "held before");
}

TEST_F(SelfTest, stray_write_past_the_end) {
  const Variant v = planted([](Operands, Operands out, Executor&, auto run) {
    run();
    element<float>(out[0], out[0].count()) = 0;
  });
  expect_found(check_guard(gelu, v, problems()), "stray write at byte 84");
  expect_found(check_guard(gelu, v, problems()), "past the end");
}

TEST_F(SelfTest, stray_write_before_the_start) {
  const Variant v = planted([](Operands, Operands out, Executor&, auto run) {
    run();
    element<float>(out[0], -1) = 0;
  });
  expect_found(check_guard(gelu, v, problems()), "stray write at byte -4");
  expect_found(check_guard(gelu, v, problems()), "before the start");
}

TEST_F(SelfTest, read_past_the_end_without_effect) {
  const Variant v = planted([](Operands in, Operands, Executor&, auto run) {
    run();
    [[maybe_unused]] volatile float stray = element<float>(in[0], in[0].count());
  });
  expect_found(check_guard(gelu, v, problems()), "past the end");
}

TEST_F(SelfTest, read_past_the_end_that_is_multiplied_by_zero) {
  const Variant v = planted([](Operands in, Operands out, Executor&, auto run) {
    run();
    if (out[0].count() > 0) element<float>(out[0], 0) += 0 * element<volatile float>(in[0], in[0].count());
  });
  expect_found(check_guard(gelu, v, problems()), "depend on what lies beside");
}

TEST_F(SelfTest, write_to_an_input) {
  const Variant v = planted([](Operands in, Operands, Executor&, auto run) {
    run();
    if (in[0].count() > 0) element<float>(in[0], 0) += 1;
  });
  expect_found(check_guard(gelu, v, problems()), "input 0 was written");
}

TEST_F(SelfTest, strides_ignored) {
  const Variant v = planted([](Operands in, Operands, Executor&, auto run) {
    const Layout dense(in[0].shape());
    const Operand wrong{in[0].data, &dense, in[0].dtype};
    run({&wrong, 1});
  });
  const Findings findings = check_layout(gelu, v, problems());
  expect_found(findings, "transposed: output 0");
  expect_found(findings, "stepped: output 0");
  expect_found(findings, "expanded along 0: output 0");
}

TEST_F(SelfTest, result_that_depends_on_the_threads) {
  const Variant v = planted([](Operands, Operands out, Executor& executor, auto run) {
    run();
    if (out[0].count() > 0 && executor.width() == 7) element<float>(out[0], 0) *= 1.0000002f;
  });
  expect_found(check_threads(gelu, v, problems()), "7 threads against 1");
}

TEST_F(SelfTest, blocks_that_depend_on_one_another) {
  const Variant v = planted([](Operands in, Operands out, Executor& executor, auto) {
    float running = 0;
    executor.run(in[0].count() > 100 ? 0 : in[0].count(), [&](std::int64_t i) {
      if (executor.width() > 1 && executor.width() < 64) return;
      element<float>(out[0], i) = running += element<float>(in[0], i);
    });
  });
  expect_found(check_threads(gelu, v, problems()), "blocks run backwards");
}

TEST_F(SelfTest, other_bits_in_the_13th_run) {
  const Variant v = planted([](Operands, Operands out, Executor&, auto run) {
    run();
    if (++calls % 13 == 0 && out[0].count() > 0) element<float>(out[0], 0) *= 1.0000002f;
  });
  expect_found(check_determinism(gelu, v, problems(), 20), "gives other bits than run 0");
}

TEST_F(SelfTest, crash_on_an_empty_operand) {
  const Variant v = planted([](Operands in, Operands, Executor&, auto run) {
    run();
    if (in[0].count() == 0) throw std::out_of_range("no elements");
  });
  const Variant* variants[] = {&v};
  expect_found(check_empty(gelu, variants), "no elements");
}

// The same faults on a device with its own memory, whose work is done later.
TEST_F(SelfTest, faults_on_a_device_that_is_no_host) {
  const Devices& example = Devices::present()[1];
  ASSERT_EQ(example.kind, "example");
  honest = &find_variant(gelu, "gelu.example.reference", example);
  expect_none(check_forward(gelu, *honest, problems(), example));
  expect_none(check_guard(gelu, *honest, problems(), example));
  const auto with = [](auto launch) {
    Variant v = *honest;
    v.launch = launch;
    return v;
  };
  static const auto write = [](Queue& queue, const Operand& o, std::int64_t i, float value) {
    queue.copy_in(o.data + i * std::int64_t{sizeof value}, &value, sizeof value);
  };
  const Variant corrupted =
      with([](const void* attrs, Operands in, Operands out, auto& executor, Queue& queue, auto& p) {
        honest->launch(attrs, in, out, executor, queue, p);
        if (out[0].dtype == DType::f32 && out[0].count() > 0) write(queue, out[0], out[0].count() / 2, 7);
      });
  expect_found(check_forward(gelu, corrupted, problems(), example), "1 of 120 beyond");
  const Variant past = with([](const void* attrs, Operands in, Operands out, auto& executor, Queue& queue, auto& pool) {
    honest->launch(attrs, in, out, executor, queue, pool);
    if (out[0].dtype == DType::f32) write(queue, out[0], out[0].count(), 0);  // of 2 bytes, it would be past the band
  });
  expect_found(check_guard(gelu, past, problems(), example), "stray write at byte 84");
  const Variant* variants[] = {&past};
  expect_found(check_errors(gelu, variants, example), "touches memory outside its operands");
  const Variant input =
      with([](const void* attrs, Operands in, Operands out, auto& executor, Queue& queue, auto& pool) {
        honest->launch(attrs, in, out, executor, queue, pool);
        if (in[0].dtype == DType::f32 && in[0].count() > 0) write(queue, in[0], 0, 7);
      });
  expect_found(check_guard(gelu, input, problems(), example), "input 0 was written");
  const Variant late = with([](const void*, Operands, Operands out, auto&, Queue& queue, auto&) {
    if (out[0].dtype == DType::f32 && out[0].count() > 0) write(queue, out[0], 0, 0);
  });
  expect_found(check_guard(gelu, late, problems(), example), "not written");
}

// What a record can say wrong.

TEST_F(SelfTest, wrong_flops) {
  OpRecord record = *gelu.record;
  record.cost = [](const void* attrs, MetasIn in, MetasIn out) {
    Cost cost = honest_record->cost(attrs, in, out);
    cost.flops += 1;
    return cost;
  };
  const OpInfo op = with_record(gelu, record);
  expect_found(check_cost(op, problems()), "flops declared");
  expect_found(check_counts(op, problems()), "flops counted by the device");
}

TEST_F(SelfTest, wrong_bytes) {
  OpRecord record = *gelu.record;
  record.cost = [](const void* attrs, MetasIn in, MetasIn out) {
    Cost cost = honest_record->cost(attrs, in, out);
    cost.bytes_read -= 1;
    cost.bytes_written -= 2;
    return cost;
  };
  const Findings findings = check_cost(with_record(gelu, record), problems());
  expect_found(findings, "bytes read declared");
  expect_found(findings, "bytes written declared");
}

TEST_F(SelfTest, op_that_cannot_work_in_place) {
  OpInfo op = find_op("permute");
  op.in_place = true;
  op.samples = {{"square", std::make_shared<Permute::Attrs>(Permute::Attrs{{1, 0}}), {{{20, 20}}}}};
  expect_found(check_alias(op, problems_of(op)), "other bits in place");
}

TEST_F(SelfTest, wrong_shape) {
  OpRecord record = *gelu.record;
  record.infer = [](const void* attrs, MetasIn in) {
    Metas out = honest_record->infer(attrs, in);
    if (out[0].shape.rank() == 2) out[0].shape = out[0].shape.with(1, out[0].shape[1] + 1);
    return out;
  };
  const OpInfo op = with_record(gelu, record);
  expect_found(check_reference(op, problems_of(op)), "is NaN");
}

TEST_F(SelfTest, reference_that_leaves_an_element) {
  OpInfo op = gelu;
  op.reference = [](const void*, In<double>, Out<double>) {};
  expect_found(check_reference(op, problems_of(op)), "not written");
}

TEST_F(SelfTest, wrong_gradient_factor) {
  OpRecord record = *gelu.record;
  record.vjp = [](const void* attrs, const Saved& saved, TensorsIn cotangents, Needs needs) {
    Tensors g = honest_record->vjp(attrs, saved, cotangents, needs);
    visit(g[0].dtype(), [&]<class T>() {
      if constexpr (std::is_floating_point_v<T>) {
        for (T& v : host_mut<T>(g[0])) v *= static_cast<T>(1.00001);
      }
    });
    return g;
  };
  expect_found(check_gradient(with_record(gelu, record)), "differences");
}

TEST_F(SelfTest, one_wrong_gradient_element) {
  OpRecord record = *gelu.record;
  record.vjp = [](const void* attrs, const Saved& saved, TensorsIn cotangents, Needs needs) {
    Tensors g = honest_record->vjp(attrs, saved, cotangents, needs);
    if (g[0].dtype() == DType::f64 && g[0].count() > 1000) host_mut<double>(g[0])[777] += 1;
    return g;
  };
  expect_found(check_gradient(with_record(gelu, record)), "along a random direction");
}

TEST_F(SelfTest, gradient_of_another_shape) {
  OpRecord record = *gelu.record;
  record.vjp = [](const void* attrs, const Saved& saved, TensorsIn cotangents, Needs needs) {
    Tensors g = honest_record->vjp(attrs, saved, cotangents, needs);
    g[0] = g[0].view({-1, 1});
    return g;
  };
  expect_found(check_gradient(with_record(gelu, record)), "the gradient of operand 0 is f64(21,1)");
}

TEST_F(SelfTest, save_that_is_not_declared) {
  OpRecord record = *gelu.record;
  record.saves = {};
  expect_found(check_gradient(with_record(gelu, record)), "undefined");
}

// The tape keeps tensors per wanted operand, for ops whose gradients come from one kernel too.
TEST_F(SelfTest, save_that_is_declared_for_one_operand_only) {
  OpInfo attention = find_op("attention");
  attention.samples.resize(1);
  expect_none(check_gradient(attention));
  OpRecord record = *attention.record;
  record.saves.for_operand[1] = {};
  expect_found(check_gradient(with_record(attention, record)), "undefined");
}

// Refuses the cotangents of its statistics: what is left has to be checked all the same.
TEST_F(SelfTest, wrong_gradient_beside_an_output_without_one) {
  OpInfo layer_norm = find_op("layer_norm");
  std::erase_if(layer_norm.samples, [](const OpInfo::Case& c) { return c.name != "(3,7)"; });
  expect_none(check_gradient(layer_norm));
  honest_record = layer_norm.record;
  OpRecord record = *layer_norm.record;
  record.vjp = [](const void* attrs, const Saved& saved, TensorsIn cotangents, Needs needs) {
    Tensors g = honest_record->vjp(attrs, saved, cotangents, needs);
    if (g[1].defined() && g[1].dtype() == DType::f64) host_mut<double>(g[1])[3] *= 1.00001;
    return g;
  };
  expect_found(check_gradient(with_record(layer_norm, record)), "operand 1: element (3)");
}

TEST_F(SelfTest, gradient_refused_for_no_reason) {
  OpInfo layer_norm = find_op("layer_norm");
  std::erase_if(layer_norm.samples, [](const OpInfo::Case& c) { return c.name != "(3,7)"; });
  honest_record = layer_norm.record;
  OpRecord record = *layer_norm.record;
  record.vjp = [](const void*, const Saved&, TensorsIn, Needs) -> Tensors { fail<TapeError>("layer_norm", "not now"); };
  Findings findings = check_gradient(with_record(layer_norm, record));
  expect_found(findings, "operand 2 has a gradient from no output");
  expect_found(findings, "nothing was compared");
  record.vjp = [](const void* attrs, const Saved& saved, TensorsIn cotangents, Needs needs) -> Tensors {
    if (cotangents[1].defined()) fail<TapeError>("layer_norm", "not now");
    return honest_record->vjp(attrs, saved, cotangents, needs);
  };
  expect_found(check_gradient(with_record(layer_norm, record)), "output 1 is refused in other words");
  record.vjp = [](const void* attrs, const Saved& saved, TensorsIn cotangents, Needs needs) -> Tensors {
    if (needs[1]) fail<TapeError>("layer_norm", "output 0 does not reach gamma");
    return honest_record->vjp(attrs, saved, cotangents, needs);
  };
  expect_found(check_gradient(with_record(layer_norm, record)), "output 0 is taken for some operands only");
}

TEST_F(SelfTest, gradient_that_is_not_zero_without_elements) {
  // Two operands, an output that is always empty.
  OpInfo op = find_op("add");
  OpRecord record = *op.record;
  record.infer = [](const void*, MetasIn in) { return Metas{{{0}, in[0].dtype}}; };
  record.cost = [](const void*, MetasIn in, MetasIn) { return stream_cost(0, in, {}); };
  record.vjp = [](const void*, const Saved& saved, TensorsIn cotangents, Needs needs) {
    Tensors g(2);
    for (std::size_t i = 0; i < 2; ++i) {
      if (!needs[i]) continue;
      g[i] = Tensor::zeros(cotangents[0].device(), saved.input_meta(i).shape, saved.input_meta(i).dtype);
    }
    return g;
  };
  op.record = &record;
  op.reference = [](const void*, In<double>, Out<double>) {};
  op.samples.resize(1);
  op.samples[0].inputs = {{{2, 3}}, {{4}}};
  expect_none(check_empty(op, {}));
  record.vjp = [](const void*, const Saved& saved, TensorsIn cotangents, Needs needs) {
    Tensors g(2);
    for (std::size_t i = 0; i < 2; ++i) {  // poisoned, not zero
      if (!needs[i]) continue;
      g[i] = Tensor::empty(cotangents[0].device(), saved.input_meta(i).shape, saved.input_meta(i).dtype);
    }
    return g;
  };
  expect_found(check_empty(op, {}), "the gradient of operand 0 has a");
}

TEST_F(SelfTest, save_that_nobody_reads) {
  OpRecord record = *gelu.record;
  record.saves.for_operand[0].outputs = 1;
  expect_found(check_saves(with_record(gelu, record)), "output 0 is kept for the gradient of operand 0");
  expect_none(check_saves(gelu));
}

TEST_F(SelfTest, save_without_a_gradient) {
  const OpInfo& grad = find_op("gelu_grad");
  OpRecord record = *grad.record;
  record.saves.for_operand[1].inputs = 1;
  expect_found(check_saves(with_record(grad, record)), "has no gradient");
}

TEST_F(SelfTest, samples_that_leave_checks_without_work) {
  expect_none(check_samples(gelu, problems()));
  const auto expect = [&](std::vector<OpInfo::Case> samples, std::string_view text) {
    OpInfo op = gelu;
    op.samples = std::move(samples);
    expect_found(check_samples(op, problems_of(op)), text);
  };
  OpInfo::Case one = gelu.samples[0], large = gelu.samples[4], odd = gelu.samples[2], rank4 = gelu.samples[3];
  ASSERT_TRUE(one.name == "one" && odd.name == "odd" && rank4.name == "rank4" && large.name == "blocks");
  expect({}, "there are none");
  expect({one, large}, "at most 5000 elements");
  expect({one, odd}, "more than 64 elements");
  expect({odd, rank4, odd}, "two samples are named odd");
  rank4.inputs[0].fill = Fill::zeros();
  expect({rank4}, "are zeros");
}

TEST_F(SelfTest, wrong_number_of_outputs_tolerance_and_names) {
  expect_none(check_record(gelu, problems(), variants_of(gelu)));
  OpInfo op = gelu;
  op.outputs = 2;
  op.tolerance.ulps = 1e6;
  Variant renamed = *honest;
  renamed.name = "sigmoid.cpu.vector.f32.baseline";
  const Variant* wrong[] = {&renamed, honest, honest};
  const Findings findings = check_record(op, problems(), wrong);
  expect_found(findings, "outputs = 2, the shape rule gives 1");
  expect_found(findings, "a tolerance of 1000000 ulps");
  expect_found(findings, "has a variant sigmoid.");
  expect_found(findings, "two variants are named gelu.");
}

TEST_F(SelfTest, forgotten_variants) {
  std::vector<const Variant*> some;
  for (const Variant* v : variants_of(gelu)) {
    if (!v->name.ends_with("f32.avx2") && v->name.find(".f16.") == std::string_view::npos) some.push_back(v);
  }
  const Findings findings = check_record(gelu, problems(), some);
  expect_found(findings, "gelu.cpu.vector.f32 has no variant for avx2");
  expect_found(findings, "gelu.cpu.vector.bf16 has no partner gelu.cpu.vector.f16");
  expect_found(check_record(gelu, problems(), variants_of(gelu).last(1)), "no variant but the reference");
}

TEST_F(SelfTest, swapped_needs) {
  const OpInfo& add = find_op("add");
  honest_record = add.record;
  OpRecord record = *add.record;
  record.vjp = [](const void* attrs, const Saved& saved, TensorsIn cotangents, Needs needs) {
    return honest_record->vjp(attrs, saved, cotangents, Needs((needs.bits() & 1) << 1 | (needs.bits() >> 1 & 1)));
  };
  expect_found(check_gradient(with_record(add, record)), "though not needed");
}

TEST_F(SelfTest, gradients_of_two_operands_mixed_up) {
  const OpInfo& add = find_op("add");
  honest_record = add.record;
  OpRecord record = *add.record;
  record.vjp = [](const void* attrs, const Saved& saved, TensorsIn cotangents, Needs needs) {
    Tensors g = honest_record->vjp(attrs, saved, cotangents, needs);
    if (needs.bits() == 3) return g;
    for (Tensor& t : g) {
      if (t.defined() && t.dtype() == DType::f64) t = Tensor::zeros(t.device(), t.shape(), t.dtype());
    }
    return g;
  };
  expect_found(check_gradient(with_record(add, record)), "alone has other bits");
}

TEST_F(SelfTest, rule_that_refuses_with_the_wrong_error) {
  OpRecord record = *gelu.record;
  record.infer = [](const void* attrs, MetasIn in) {
    if (!is_floating(in[0].dtype)) throw std::runtime_error("untyped");
    return honest_record->infer(attrs, in);
  };
  const OpInfo op = with_record(gelu, record);
  const Variant* variants[] = {honest};
  expect_found(check_errors(op, variants), "untyped");
}

TEST_F(SelfTest, rule_that_accepts_what_the_kernel_cannot) {
  const OpInfo& add = find_op("add");
  OpRecord record = *add.record;
  record.infer = [](const void*, MetasIn in) { return Metas{in[0]}; };  // operand 1 may have any shape
  const OpInfo op = with_record(add, record);
  Variant v = find_variant(add, "add.cpu.vector.f32.baseline");
  v.launch = [](const void*, Operands in, Operands out, auto&...) {
    auto read = [](const Operand& o, std::int64_t i) {  // the operand may be of another dtype, and not aligned
      float value;
      std::memcpy(&value, o.data + i * std::int64_t{sizeof value}, sizeof value);
      return value;
    };
    for (std::int64_t i = 0; i < out[0].count(); ++i) {
      const float sum = read(in[0], i) + read(in[1], i);
      std::memcpy(out[0].data + i * std::int64_t{sizeof sum}, &sum, sizeof sum);
    }
  };
  const Variant* variants[] = {&v};
  expect_found(check_errors(op, variants), "touches memory outside its operands");
}

TEST_F(SelfTest, equal_infinities_and_nans_are_no_difference) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const Tolerance exact{.ulps = 0};
  auto beyond = [&](double got, double want) { return distance({&got, 1}, {&want, 1}, DType::f32, exact, 1).beyond; };
  EXPECT_EQ(beyond(inf, inf), 0);
  EXPECT_EQ(beyond(nan, nan), 0);
  EXPECT_EQ(beyond(inf, 1e300), 0);  // the reference rounds to it in f32
  EXPECT_EQ(beyond(-inf, inf), 1);
  EXPECT_EQ(beyond(nan, 1), 1);
  EXPECT_EQ(beyond(1, nan), 1);
  EXPECT_EQ(beyond(inf, 1), 1);
  EXPECT_EQ(beyond(1, inf), 1);
}

// Most elements of a strided convolution's input gradient have no terms.
TEST_F(SelfTest, elements_without_terms_do_not_tighten_the_tolerance) {
  const Tolerance sums{.growth = Tolerance::Growth::sqrt_k, .scale = Tolerance::Scale::tensor, .ulps = 3};
  std::vector<double> want{1, -2, 3, -4}, got{1, -2, 3 + 0x1p-20, -4};
  const Distance dense = distance(got, want, DType::f32, sums, 36);
  for (std::vector<double>* values : {&want, &got}) values->resize(16, 0.0);
  const Distance sparse = distance(got, want, DType::f32, sums, 9);
  EXPECT_GT(dense.ulps, 0);
  EXPECT_DOUBLE_EQ(sparse.ulps, dense.ulps);
}

}  // namespace
}  // namespace lamina::harness
