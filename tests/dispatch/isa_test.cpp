#include "lamina/kernels/cpu/isa.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "lamina/core/error.hpp"

namespace lamina {
namespace {

// CPUID leaf 1 ECX.
constexpr std::uint32_t kFma = 1u << 12, kOsXsave = 1u << 27, kAvx = 1u << 28, kF16c = 1u << 29;
constexpr std::uint32_t kSse42 = 1u << 20, kXsave = 1u << 26;
// CPUID leaf 7 EBX.
constexpr std::uint32_t kAvx2 = 1u << 5, kAvx512f = 1u << 16, kDq = 1u << 17, kPf = 1u << 26, kEr = 1u << 27,
                        kCd = 1u << 28, kBw = 1u << 30, kVl = 1u << 31;

constexpr std::uint32_t kSandyBridge = kSse42 | kXsave | kOsXsave | kAvx;
constexpr std::uint32_t kHaswell = kSandyBridge | kF16c | kFma;
constexpr std::uint32_t kSkylakeX = kAvx2 | kAvx512f | kDq | kCd | kBw | kVl;

struct Machine {
  const char* name;
  CpuFeatures features;
  Isa best;
};

class IsaTest : public ::testing::TestWithParam<Machine> {};
INSTANTIATE_TEST_SUITE_P(
    machines, IsaTest,
    ::testing::Values(Machine{"nothing", {0, 0, 0}, Isa::baseline}, Machine{"nehalem", {kSse42, 0, 0}, Isa::baseline},
                      Machine{"sandy_bridge", {kSandyBridge, 0, 0x7}, Isa::baseline},
                      Machine{"ivy_bridge", {kSandyBridge | kF16c, 0, 0x7}, Isa::baseline},
                      Machine{"piledriver_fma_without_avx2", {kHaswell, 0, 0x7}, Isa::baseline},
                      Machine{"haswell", {kHaswell, kAvx2, 0x7}, Isa::avx2},
                      Machine{"zen2", {kHaswell, kAvx2, 0x207}, Isa::avx2},
                      Machine{"alder_lake", {kHaswell, kAvx2, 0x207}, Isa::avx2},
                      Machine{"skylake_x", {kHaswell, kSkylakeX, 0xE7}, Isa::avx512},
                      Machine{"skylake_x_with_mpx_and_pkru", {kHaswell, kSkylakeX, 0x2FF}, Isa::avx512},
                      Machine{"sapphire_rapids_with_amx_state", {kHaswell, kSkylakeX, 0x602E7}, Isa::avx512},
                      Machine{"knights_landing", {kHaswell, kAvx2 | kAvx512f | kCd | kEr | kPf, 0xE7}, Isa::avx2},
                      // The operating system or hypervisor does not keep the registers (llama.cpp#20388).
                      Machine{"haswell_os_without_xsave", {kHaswell & ~kOsXsave, kAvx2, 0}, Isa::baseline},
                      Machine{"haswell_without_osxsave_but_xcr0", {kHaswell & ~kOsXsave, kAvx2, 0x7}, Isa::baseline},
                      Machine{"haswell_os_keeps_xmm_only", {kHaswell, kAvx2, 0x3}, Isa::baseline},
                      Machine{"haswell_os_keeps_ymm_but_not_xmm", {kHaswell, kAvx2, 0x5}, Isa::baseline},
                      Machine{"skylake_x_os_without_zmm", {kHaswell, kSkylakeX, 0x7}, Isa::avx2},
                      Machine{"skylake_x_without_opmask", {kHaswell, kSkylakeX, 0xC7}, Isa::avx2},
                      Machine{"skylake_x_without_upper_zmm", {kHaswell, kSkylakeX, 0xA7}, Isa::avx2},
                      Machine{"skylake_x_without_zmm16_to_31", {kHaswell, kSkylakeX, 0x67}, Isa::avx2},
                      Machine{"skylake_x_zmm_without_ymm", {kHaswell, kSkylakeX, 0xE3}, Isa::baseline},
                      Machine{"skylake_x_os_without_xsave", {kHaswell & ~kOsXsave, kSkylakeX, 0}, Isa::baseline},
                      // Features masked one by one, as virtual machines do.
                      Machine{"avx2_without_fma", {kHaswell & ~kFma, kAvx2, 0x7}, Isa::baseline},
                      Machine{"avx2_without_f16c", {kHaswell & ~kF16c, kAvx2, 0x7}, Isa::baseline},
                      Machine{"avx2_without_avx", {kHaswell & ~kAvx, kAvx2, 0x7}, Isa::baseline},
                      Machine{"avx512_without_avx2", {kHaswell, kSkylakeX & ~kAvx2, 0xE7}, Isa::baseline},
                      Machine{"avx512_without_fma", {kHaswell & ~kFma, kSkylakeX, 0xE7}, Isa::baseline},
                      Machine{"avx512_without_f", {kHaswell, kSkylakeX & ~kAvx512f, 0xE7}, Isa::avx2},
                      Machine{"avx512_without_dq", {kHaswell, kSkylakeX & ~kDq, 0xE7}, Isa::avx2},
                      Machine{"avx512_without_bw", {kHaswell, kSkylakeX & ~kBw, 0xE7}, Isa::avx2},
                      Machine{"avx512_without_vl", {kHaswell, kSkylakeX & ~kVl, 0xE7}, Isa::avx2},
                      Machine{"avx512_without_cd", {kHaswell, kSkylakeX & ~kCd, 0xE7}, Isa::avx512},  // not used
                      Machine{"everything", {~0u, ~0u, ~std::uint64_t{0}}, Isa::avx512}),
    [](const auto& parameter) { return parameter.param.name; });

TEST_P(IsaTest, best_set_and_all_below_it) {
  const auto& [name, features, best] = GetParam();
  EXPECT_TRUE(can_run(Isa::baseline, features));
  EXPECT_EQ(can_run(Isa::avx2, features), best >= Isa::avx2);
  EXPECT_EQ(can_run(Isa::avx512, features), best == Isa::avx512);
  EXPECT_EQ(can_run(Isa::wide, features), can_run(Isa::avx2, features));  // it is compiled for AVX2
  const std::vector<Isa> isas = usable_isas(features);
  EXPECT_EQ(isas.front(), best);
  EXPECT_EQ(isas.back(), Isa::baseline);
  EXPECT_EQ(isas.size(), static_cast<std::size_t>(best) + 1);
}

TEST(Isa, this_machine_agrees_with_the_compiler) {
#if defined(__x86_64__) && defined(__GNUC__)
  const CpuFeatures features = CpuFeatures::read();
  __builtin_cpu_init();
  if (can_run(Isa::avx2, features)) {
    EXPECT_TRUE(__builtin_cpu_supports("avx2"));
    EXPECT_TRUE(__builtin_cpu_supports("fma"));
  }
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  EXPECT_EQ(can_run(Isa::avx512, features), avx512);
#endif
}

TEST(Isa, the_environment_sets_a_limit) {
  const char* outside = std::getenv("LAMINA_ISA");
  const std::string before = outside != nullptr ? outside : "";
  ::setenv("LAMINA_ISA", "", 1);
  EXPECT_EQ(isa_limit(), Isa::avx512);
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    ::setenv("LAMINA_ISA", std::string(name_of(isa)).c_str(), 1);
    EXPECT_EQ(isa_limit(), isa);
  }
  for (const char* wrong : {"nonsense", "wide", "AVX2", " avx2"}) {
    ::setenv("LAMINA_ISA", wrong, 1);
    EXPECT_THROW(isa_limit(), ValueError) << wrong;
  }
  ::setenv("LAMINA_ISA", before.c_str(), 1);
}

TEST(Isa, names) {
  EXPECT_EQ(name_of(Isa::baseline), "baseline");
  EXPECT_EQ(name_of(Isa::avx2), "avx2");
  EXPECT_EQ(name_of(Isa::avx512), "avx512");
  EXPECT_EQ(name_of(Isa::wide), "wide");
}

}  // namespace
}  // namespace lamina
