#include "lamina/kernels/table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "lamina/kernels/add/op.hpp"
#include "lamina/kernels/cpu/device.hpp"
#include "lamina/kernels/cpu/isa.hpp"
#include "lamina/kernels/gelu/op.hpp"
#include "lamina/kernels/op_info.hpp"

namespace lamina {
namespace {

// Sets a variable of the environment while it lives.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before, had_ = true;
    setenv(name, value, 1);
  }
  ~Environment() { had_ ? setenv(name_, before_.c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::string before_;
  bool had_ = false;
};

const KernelTable::Entry& entry_of(const Device& device, int op) { return device.state()->kernels->entry(op); }
std::string_view first(const Device& device, int op) { return entry_of(device, op).usable.front()->name; }

bool avx2_here() { return can_run(Isa::avx2, CpuFeatures::read()); }

TEST(KernelTable, best_instruction_set_first_and_reference_last) {
  const Device cpu = cpu_device({.threads = 1});
  const KernelTable::Entry& entry = entry_of(cpu, OpId<Gelu>::value);
  ASSERT_GE(entry.usable.size(), 2u);
  EXPECT_EQ(entry.usable.back()->name, "gelu.cpu.reference");
  EXPECT_EQ(entry.usable.front()->isa, usable_isas(CpuFeatures::read()).front());
  for (const Variant* v : entry.usable) EXPECT_NE(v->isa, Isa::wide) << v->name;
}

TEST(KernelTable, every_op_has_an_entry_named_in_the_grammar) {
  const Device device = cpu_device({.threads = 1});
  for (const OpInfo& op : all_ops()) {
    const KernelTable::Entry& entry = entry_of(device, op.record->id);
    ASSERT_FALSE(entry.all.empty()) << op.record->name;
    std::vector<std::string_view> names;
    for (const Variant* v : entry.all) {
      names.push_back(v->name);
      EXPECT_TRUE(v->name.starts_with(std::string(op.record->name) + ".cpu.")) << v->name;
      // Vector code is named after its instruction set, and nothing else is.
      for (const Isa isa : {Isa::avx2, Isa::avx512, Isa::wide}) {
        EXPECT_EQ(v->isa == isa, v->name.ends_with(fmt::format(".{}", name_of(isa)))) << v->name;
      }
    }
    std::sort(names.begin(), names.end());
    EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end()) << "two variants of one name";
  }
}

TEST(KernelTable, prefer_by_name) {
  const Device device = cpu_device({.threads = 1, .kernels = "gelu.cpu.reference"});
  EXPECT_EQ(first(device, OpId<Gelu>::value), "gelu.cpu.reference");
  EXPECT_NE(first(device, OpId<Add>::value), "add.cpu.reference");
}

TEST(KernelTable, prefer_several) {
  const Device device = cpu_device({.threads = 1, .kernels = "gelu.cpu.reference,add.cpu.vector.f16.baseline,"});
  EXPECT_EQ(first(device, OpId<Gelu>::value), "gelu.cpu.reference");
  EXPECT_EQ(first(device, OpId<Add>::value), "add.cpu.vector.f16.baseline");
}

TEST(KernelTable, prefer_by_prefix_keeps_the_order_among_its_own) {
  const Device device = cpu_device({.threads = 1, .kernels = "gelu.cpu.vector.f16."});
  const KernelTable::Entry& entry = entry_of(device, OpId<Gelu>::value);
  EXPECT_TRUE(entry.usable.front()->name.starts_with("gelu.cpu.vector.f16."));
  EXPECT_EQ(entry.usable.front()->isa, usable_isas(CpuFeatures::read()).front());
  EXPECT_EQ(entry.usable.back()->name, "gelu.cpu.reference");
}

TEST(KernelTable, a_preferred_kernel_is_the_one_that_runs) {
  const Device device = cpu_device({.threads = 1, .kernels = "gelu.cpu.reference"});
  const Tensor x = Tensor::from(device, {2}, {1.0f, -2.0f});
  EXPECT_EQ(to_vector<float>(gelu(x)).size(), 2u);
  // A kernel that does not support the problem is passed over.
  const Device other = cpu_device({.threads = 1, .kernels = "gelu.cpu.vector.f16."});
  EXPECT_EQ(to_vector<float>(gelu(Tensor::from(other, {2}, {0.0f, 0.0f}))), (std::vector<float>{0, 0}));
}

std::string message_of(const CpuOptions& options) {
  try {
    cpu_device(options);
  } catch (const ValueError& e) {
    return e.what();
  }
  return "no error";
}

TEST(KernelTable, unknown_names) {
  EXPECT_EQ(
      message_of({.threads = 1, .kernels = "gelu.cpu.fast"})
          .find("kernel preference: no variant 'gelu.cpu.fast' is usable here; variants of gelu: gelu.cpu.vector.f32."),
      0u);
  EXPECT_EQ(message_of({.threads = 1, .kernels = "glue."}),
            "kernel preference: no variant 'glue.' is usable here; variants of glue: none, there is no such op");
  // `wide` is there for tests only.
  EXPECT_NE(message_of({.threads = 1, .kernels = "gelu.cpu.vector.f32.wide"}).find("is usable here"),
            std::string::npos);
  // A name that is the beginning of others needs the dot.
  EXPECT_NE(message_of({.threads = 1, .kernels = "gelu.cpu.vector.f32"}).find("is usable here"), std::string::npos);
}

TEST(KernelTable, environment_names_kernels) {
  const Environment kernels("LAMINA_KERNELS", "gelu.cpu.reference");
  EXPECT_EQ(first(cpu_device({.threads = 1}), OpId<Gelu>::value), "gelu.cpu.reference");
  // The option wins.
  EXPECT_EQ(first(cpu_device({.threads = 1, .kernels = "gelu.cpu.vector.f32.baseline"}), OpId<Gelu>::value),
            "gelu.cpu.vector.f32.baseline");
  const Environment wrong("LAMINA_KERNELS", "nonsense");
  EXPECT_THROW(cpu_device({.threads = 1}), ValueError);
  const Environment none("LAMINA_KERNELS", "");
  EXPECT_NE(first(cpu_device({.threads = 1}), OpId<Gelu>::value), "gelu.cpu.reference");
}

Isa best_of(const Device& device) {
  Isa best = Isa::baseline;
  for (const Variant* v : entry_of(device, OpId<Gelu>::value).usable) best = std::max(best, v->isa);
  return best;
}

TEST(KernelTable, instruction_set_limit) {
  EXPECT_EQ(best_of(cpu_device({.threads = 1, .max_isa = Isa::baseline})), Isa::baseline);
  EXPECT_EQ(best_of(cpu_device({.threads = 1, .max_isa = Isa::avx2})), avx2_here() ? Isa::avx2 : Isa::baseline);
  {
    const Environment isa("LAMINA_ISA", "baseline");
    EXPECT_EQ(best_of(cpu_device({.threads = 1})), Isa::baseline);
    EXPECT_EQ(best_of(cpu_device({.threads = 1, .max_isa = Isa::avx2})), avx2_here() ? Isa::avx2 : Isa::baseline);
  }
  {
    const Environment isa("LAMINA_ISA", "avx2");
    EXPECT_EQ(best_of(cpu_device({.threads = 1})), avx2_here() ? Isa::avx2 : Isa::baseline);
  }
  {
    const Environment isa("LAMINA_ISA", "");
    EXPECT_EQ(best_of(cpu_device({.threads = 1})), usable_isas(CpuFeatures::read()).front());
  }
  const Environment isa("LAMINA_ISA", "sse9");
  EXPECT_EQ(message_of({.threads = 1}), "LAMINA_ISA: instruction set 'sse9' is unknown; known: baseline, avx2, avx512");
}

TEST(CpuDevice, options_outside_their_range) {
  EXPECT_THROW(cpu_device({.threads = -1}), ValueError);
  EXPECT_THROW(cpu_device({.memory_limit = -1}), ValueError);
}

}  // namespace
}  // namespace lamina
