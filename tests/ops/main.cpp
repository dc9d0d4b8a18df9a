// The harness: one GoogleTest per op and check; per kind of device where the check runs the op, and per variant where
// it is one of kernels:
//   ops.forward.gelu.gelu.cpu.vector.f32.avx2     ops.gradient.gelu.example     ops.saves.gelu.record
// LAMINA_SOAK=<seed> draws other values; LAMINA_LONG=1 repeats the determinism check 3000 times;
// LAMINA_OPS_REPORT=1 prints each variant's largest distance to the reference.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <map>

#include "tests/ops/checks.hpp"

namespace lamina::harness {
namespace {

const std::vector<OpInfo>& ops() {
  static const std::vector<OpInfo> all = all_ops();
  return all;
}

// Problems of the op at hand: the tests of one op follow one another, and its references are worth keeping.
Problems problems(const OpInfo& op) {
  static const OpInfo* current = nullptr;
  static std::vector<Problem> cached;
  if (current != &op) {
    cached = problems_of(op);
    current = &op;
  }
  return cached;
}

bool environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != 0 && *value != '0';
}

class OpTest : public ::testing::Test {
 public:
  explicit OpTest(std::function<Findings()> check, Isa isa) : check_(std::move(check)), isa_(isa) {}
  void TestBody() override {
    if (!runs_here(isa_)) GTEST_SKIP() << "not run: this machine has no " << name_of(isa_);
    const Findings findings = check_();
    std::size_t shown = 0;
    for (const Finding& f : findings) {
      if (shown++ == 12) break;
      ADD_FAILURE() << to_string(f);
    }
    if (findings.size() > 12) ADD_FAILURE() << findings.size() - 12 << " more findings; seed " << seed();
  }

 private:
  std::function<Findings()> check_;
  Isa isa_;
};

void add(const std::string& check, const OpInfo& op, std::string_view subject, Isa isa, std::function<Findings()> f) {
  const std::string suite = "ops." + check;
  const std::string name = fmt::format("{}.{}", op.record->name, subject);
  ::testing::RegisterTest(suite.c_str(), name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [f = std::move(f), isa]() -> OpTest* { return new OpTest(f, isa); });
}

void add_record_checks(const OpInfo& op) {
  auto record = [&](const std::string& check, std::function<Findings()> f) {
    add(check, op, "record", Isa::baseline, std::move(f));
  };
  record("reference", [&] { return check_reference(op, problems(op)); });
  record("samples", [&] { return check_samples(op, problems(op)); });
  record("record", [&] { return check_record(op, problems(op), variants_of(op)); });
  record("saves", [&] { return check_saves(op); });
  record("cost", [&] { return check_cost(op, problems(op)); });
}

void add_device_checks(const OpInfo& op, const Devices& on) {
  auto device = [&](const std::string& check, std::function<Findings()> f) {
    add(check, op, on.kind, Isa::baseline, std::move(f));
  };
  device("cost", [&] { return check_counts(op, problems(op), on); });
  device("alias", [&] { return check_alias(op, problems(op), on); });
  device("empty", [&] { return check_empty(op, variants_of(op, on), on); });
  device("errors", [&] { return check_errors(op, variants_of(op, on), on); });
  device("gradient", [&] { return has_gradient(op) ? check_gradient(op, on) : Findings{}; });
  for (const Variant* v : variants_of(op, on)) {
    auto variant = [&](const std::string& check, std::function<Findings()> f) {
      add(check, op, v->name, v->isa, std::move(f));
    };
    variant("forward", [&op, &on, v] {
      double worst = 0;
      Findings findings = check_forward(op, *v, problems(op), on, &worst);
      if (environment("LAMINA_OPS_REPORT")) {
        fmt::print("{:48} worst {:8.3g} ulps, allowed {}\n", v->name, worst, op.tolerance.ulps);
      }
      return findings;
    });
    variant("guard", [&op, &on, v] { return check_guard(op, *v, problems(op), on); });
    variant("layout", [&op, &on, v] { return check_layout(op, *v, problems(op), on); });
    variant("threads", [&op, &on, v] { return check_threads(op, *v, problems(op), on); });
    if (is_reference(*v)) continue;  // nothing in it could differ from run to run
    variant("determinism", [&op, &on, v] {
      return check_determinism(op, *v, problems(op), environment("LAMINA_LONG") ? 3000 : 20, on);
    });
  }
}

void print_support() {
  fmt::print("{:28} {:4} {}\n", "op", "vjp", "variants");
  for (const OpInfo& op : ops()) {
    std::map<std::string, std::string> isas;  // per name without the instruction set
    std::vector<std::string> order;
    for (const Variant* v : variants_of(op)) {
      std::string name(v->name);
      const std::string suffix = fmt::format(".{}", name_of(v->isa));
      if (name.ends_with(suffix)) name.resize(name.size() - suffix.size());
      if (!isas.contains(name)) order.push_back(name);
      isas[name] += fmt::format(" {}{}", name_of(v->isa), runs_here(v->isa) ? "" : " (not run here)");
    }
    std::string_view first = op.record->name;
    std::string gradient = has_gradient(op) ? "yes" : "no";
    for (const std::string& name : order) {
      fmt::print("{:28} {:4} {:40}{}\n", first, gradient, name, isas[name]);
      first = "";
      gradient = "";
    }
  }
}

TEST(ops, support) { print_support(); }

// CTest runs one process an op, under the names that CMake made of ops.def: they must be the records' own.
TEST(ops, names_in_ctest) {
  std::string names;
  for (const OpInfo& op : ops()) names += fmt::format("{}{}", names.empty() ? "" : " ", op.record->name);
  EXPECT_EQ(names, LAMINA_OPS_IN_CTEST);
}

}  // namespace
}  // namespace lamina::harness

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  for (const lamina::OpInfo& op : lamina::harness::ops()) {
    lamina::harness::add_record_checks(op);
    for (const lamina::harness::Devices& on : lamina::harness::Devices::present()) {
      if (on.partial && lamina::harness::variants_of(op, on).empty()) continue;
      lamina::harness::add_device_checks(op, on);
    }
  }
  fmt::print("values from seed {}\n", lamina::harness::seed());
  return RUN_ALL_TESTS();
}
