#include "tests/ops/checks.hpp"

namespace lamina::harness {

namespace {

// Claims many threads and runs the last block first: whoever leans on the order or the number of blocks in flight
// shows at once.
class Backwards final : public Executor {
 public:
  int width() const noexcept override { return 64; }
  void run(std::int64_t count, BlockFunction block) override {
    for (std::int64_t i = count - 1; i >= 0; --i) block(i);
  }
};

}  // namespace

Findings check_threads(const OpInfo&, const Variant& variant, Problems problems) {
  Findings findings;
  Backwards backwards;
  const Devices& devices = Devices::get();
  for (const Problem& p : problems) {
    auto found = [&](std::string text) {
      findings.push_back({"threads", std::string(variant.name), p.name, std::move(text)});
    };
    try {
      if (!supports(variant, p)) continue;
      const std::vector<Array> one = launch(variant, p, executor_of(devices.one));
      const std::vector<Array> two = launch(variant, p, executor_of(devices.two));
      if (const auto wrong = compare_bits(two, one)) found("2 threads against 1: " + *wrong);
      const std::vector<Array> seven = launch(variant, p, executor_of(devices.seven));
      if (const auto wrong = compare_bits(seven, one)) found("7 threads against 1: " + *wrong);
      const std::vector<Array> reversed = launch(variant, p, backwards);
      if (const auto wrong = compare_bits(reversed, one)) found("blocks run backwards: " + *wrong);
    } catch (...) {
      found(current_exception_text());
    }
  }
  return findings;
}

Findings check_determinism(const OpInfo&, const Variant& variant, Problems problems, int runs) {
  Findings findings;
  for (const Problem& p : problems) {
    auto found = [&](std::string text) {
      findings.push_back({"determinism", std::string(variant.name), p.name, std::move(text)});
    };
    try {
      if (!supports(variant, p)) continue;
      std::uint64_t first = 0;
      for (int run = 0; run < runs; ++run) {
        std::uint64_t hash = 0;
        for (const Array& a : launch(variant, p, executor_of(Devices::get().two)))
          hash ^= hash_bytes(a.bytes, hash + 1);
        if (run == 0) first = hash;
        if (hash == first) continue;
        found(fmt::format("run {} gives other bits than run 0", run));
        break;
      }
    } catch (...) {
      found(current_exception_text());
    }
  }
  return findings;
}

}  // namespace lamina::harness
