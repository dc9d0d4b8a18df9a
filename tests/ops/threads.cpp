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

Findings check_threads(const OpInfo&, const Variant& variant, Problems problems, const Devices& on) {
  Findings findings;
  Backwards backwards;
  for (const Problem& p : problems) {
    auto found = [&](std::string text) {
      findings.push_back({"threads", std::string(variant.name), p.name, std::move(text)});
    };
    try {
      if (!supports(variant, p)) continue;
      const std::vector<Array> first = launch(variant, p, on.first);
      for (const Device* device : {&on.second, &on.third}) {
        const auto wrong = compare_bits(launch(variant, p, *device), first);
        if (wrong) found(fmt::format("{} against {}: {}", device->name(), on.first.name(), *wrong));
      }
      if (!on.first.host_accessible()) continue;
      const std::vector<Array> reversed = launch(variant, p, on.first, &backwards);
      if (const auto wrong = compare_bits(reversed, first)) found("blocks run backwards: " + *wrong);
    } catch (...) {
      found(current_exception_text());
    }
  }
  return findings;
}

Findings check_determinism(const OpInfo&, const Variant& variant, Problems problems, int runs, const Devices& on) {
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
        for (const Array& a : launch(variant, p, on.second)) hash ^= hash_bytes(a.bytes, hash + 1);
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
