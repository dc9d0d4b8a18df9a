#include "lamina/core/io/npy.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "lamina/core/error.hpp"
#include "lamina/core/io/bytes.hpp"
#include "lamina/tests/io/allocation_watch.hpp"
#include "lamina/tests/support/host_device.hpp"
#include "lamina/tests/support/temp_dir.hpp"

// All fixtures are bytes made by hand after NumPy's description of the format: no NumPy is needed.
namespace lamina {
namespace {

using test::bytes_of;
using test::TempDir;

std::string npy(const std::string& header, const std::string& data, int version = 1) {
  std::string out = "\x93NUMPY";
  out += static_cast<char>(version);
  out += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) out += static_cast<char>(header.size() >> (8 * i));
  return out + header + data;
}

std::string dict(const std::string& descr, const std::string& shape, bool fortran = false) {
  return "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': " + shape +
         ", }          \n";
}

template <class T>
std::string raw(std::vector<T> values, bool big = false) {
  auto bytes = std::as_writable_bytes(std::span(values));
  if (big) swap_items(bytes, sizeof(T));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <class T>
std::vector<T> values(const NpyArray& array) {
  EXPECT_EQ(array.data.size() % sizeof(T), 0u);
  std::vector<T> out(array.data.size() / sizeof(T));
  std::memcpy(out.data(), array.data.data(), array.data.size());
  return out;
}

NpyArray parse(const std::string& file) { return parse_npy(bytes_of(file), "t.npy"); }

TEST(Npy, CAndFortranOrder) {
  // The 3x4 array 0..11.
  std::vector<float> c, f;
  for (int i = 0; i < 12; ++i) c.push_back(static_cast<float>(i));
  for (int column = 0; column < 4; ++column) {
    for (int row = 0; row < 3; ++row) f.push_back(static_cast<float>(row * 4 + column));
  }
  const NpyArray a = parse(npy(dict("<f4", "(3, 4)"), raw(c)));
  EXPECT_EQ(a.dtype, DType::f32);
  EXPECT_EQ(a.shape, (Shape{3, 4}));
  EXPECT_EQ(values<float>(a), c);
  EXPECT_EQ(values<float>(parse(npy(dict("<f4", "(3, 4)", true), raw(f)))), c);
  // 1-D, 0-D and empty ones are the same in both orders.
  for (const bool fortran : {false, true}) {
    EXPECT_EQ(values<float>(parse(npy(dict("<f4", "(3,)", fortran), raw<float>({1, 2, 3})))),
              (std::vector<float>{1, 2, 3}));
    const NpyArray scalar = parse(npy(dict("<f4", "()", fortran), raw<float>({7})));
    EXPECT_EQ(scalar.shape, Shape{});
    EXPECT_EQ(values<float>(scalar), (std::vector<float>{7}));
    EXPECT_EQ(parse(npy(dict("<f4", "(3, 0, 2)", fortran), "")).shape, (Shape{3, 0, 2}));
  }
}

TEST(Npy, FortranOrderOfRankThree) {
  const Shape shape{2, 3, 4};
  std::vector<std::int32_t> f(24), c(24);
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 4; ++k) {
        const int value = 100 * i + 10 * j + k;
        c[static_cast<std::size_t>((i * 3 + j) * 4 + k)] = value;
        f[static_cast<std::size_t>(i + 2 * (j + 3 * k))] = value;
      }
    }
  }
  EXPECT_EQ(values<std::int32_t>(parse(npy(dict("<i4", "(2, 3, 4)", true), raw(f)))), c);
  EXPECT_EQ(values<std::int32_t>(parse(npy(dict(">i4", "(2, 3, 4)", true), raw(f, true)))), c);
}

TEST(Npy, VersionsAndLongHeaders) {
  const std::string data = raw<float>({1, 2});
  std::string longest = dict("<f4", "(2,)");
  longest.insert(longest.size() - 1, 70'000 - longest.size(), ' ');
  ASSERT_EQ(longest.size(), 70'000u);
  for (const int version : {2, 3}) {
    EXPECT_EQ(values<float>(parse(npy(longest, data, version))), (std::vector<float>{1, 2}));
    EXPECT_EQ(values<float>(parse(npy(dict("<f4", "(2,)"), data, version))), (std::vector<float>{1, 2}));
  }
  LAMINA_EXPECT_ERROR(parse(npy(dict("<f4", "(2,)"), data, 4)), FormatError, "version 4.0");
  std::string minor = npy(dict("<f4", "(2,)"), data);
  minor[7] = 1;
  LAMINA_EXPECT_ERROR(parse(minor), FormatError, "version 1.1");
}

TEST(Npy, ByteOrdersAndTypes) {
  EXPECT_EQ(values<float>(parse(npy(dict(">f4", "(2,)"), raw<float>({1.5f, -2}, true)))),
            (std::vector<float>{1.5f, -2}));
  EXPECT_EQ(values<double>(parse(npy(dict(">f8", "(1,)"), raw<double>({0.1}, true)))), (std::vector<double>{0.1}));
  EXPECT_EQ(values<double>(parse(npy(dict("=f8", "(1,)"), raw<double>({0.1})))), (std::vector<double>{0.1}));
  const NpyArray half = parse(npy(dict("<f2", "(2,)"), std::string("\x00\x3c\x00\xc0", 4)));
  EXPECT_EQ(half.dtype, DType::f16);
  EXPECT_EQ(static_cast<float>(values<Half>(half)[1]), -2.0f);
  const NpyArray yes = parse(npy(dict("|b1", "(2,)"), std::string("\1\0", 2)));
  EXPECT_EQ(yes.dtype, DType::boolean);
  EXPECT_EQ(yes.data, bytes_of(std::string("\1\0", 2)));
  EXPECT_EQ(parse(npy(dict("|u1", "(3,)"), "abc")).dtype, DType::u8);
  EXPECT_EQ(values<std::int64_t>(parse(npy(dict("<i8", "(1,)"), raw<std::int64_t>({-5})))),
            (std::vector<std::int64_t>{-5}));
  LAMINA_EXPECT_ERROR(parse(npy(dict("|b1", "(3,)"), "\1\1\2")), FormatError,
                      "element 2 of a bool array has the byte 2");
}

TEST(Npy, WidensWhatTheEngineHasNoTypeFor) {
  EXPECT_EQ(values<std::int32_t>(parse(npy(dict("|i1", "(2,)"), "\xff\x7f"))), (std::vector<std::int32_t>{-1, 127}));
  EXPECT_EQ(values<std::int32_t>(parse(npy(dict(">i2", "(2,)"), raw<std::int16_t>({-300, 7}, true)))),
            (std::vector<std::int32_t>{-300, 7}));
  EXPECT_EQ(values<std::int32_t>(parse(npy(dict("<u2", "(1,)"), raw<std::uint16_t>({65535})))),
            (std::vector<std::int32_t>{65535}));
  EXPECT_EQ(values<std::int64_t>(parse(npy(dict("<u4", "(1,)"), raw<std::uint32_t>({4294967295u})))),
            (std::vector<std::int64_t>{4294967295}));
  EXPECT_EQ(values<std::int64_t>(parse(npy(dict("<u8", "(1,)"), raw<std::uint64_t>({5})))),
            (std::vector<std::int64_t>{5}));
  LAMINA_EXPECT_ERROR(parse(npy(dict("<u8", "(1,)"), raw<std::uint64_t>({std::uint64_t{1} << 63}))), DTypeError,
                      "9223372036854775808, which i64 cannot hold");
}

TEST(Npy, WhatPythonWrites) {
  // Python 2 on Windows; double quotes; no blanks, no trailing comma; keys in another order.
  EXPECT_EQ(parse(npy("{'descr': '<i4', 'fortran_order': False, 'shape': (2L,), }\n", raw<std::int32_t>({1, 2}))).shape,
            Shape{2});
  EXPECT_EQ(parse(npy("{\"shape\":(1,2),\"fortran_order\":True,\"descr\":\"<i4\"}", raw<std::int32_t>({1, 2}))).shape,
            (Shape{1, 2}));
}

TEST(Npy, TypesThatAreRefusedByTheHeaderAlone) {
  const std::string big_shape = "(1000000000,)";
  for (const char* descr :
       {"|O", "O", "|O8", "<c8", "<c16", "<U7", "|S3", "|V2", "<M8[ns]", "<f16", "<f3", "|b2", "", "<", "<<f4", "x4"}) {
    const auto file = bytes_of(npy(dict(descr, big_shape), ""));
    const test::AllocationWatch watch;
    EXPECT_THROW((void)parse_npy(file, "t"), DTypeError) << descr;
    EXPECT_LT(watch.largest(), 4096u) << descr;
  }
  LAMINA_EXPECT_ERROR(parse(npy(dict("|O", "(1,)"), "")), DTypeError, "Python objects");
  LAMINA_EXPECT_ERROR(
      parse(npy("{'descr': [('a', '<f4'), ('b', '|O')], 'fortran_order': False, 'shape': (1,), }", "12345678")),
      DTypeError, "structured");
}

TEST(Npy, BrokenHeaders) {
  const std::string data = raw<float>({1, 2});
  for (const std::string& header : std::vector<std::string>{
           "",
           "{",
           "{}",
           "[]",
           "{'descr': '<f4', 'fortran_order': False}",
           "{'descr': '<f4', 'shape': (2,)}",
           "{'fortran_order': False, 'shape': (2,)}",
           "{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': [2]}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2.0,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2 2)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2,}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': ((2,),)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'extra': 1}",
           "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
           "{'descr': '<f4' 'fortran_order': False, 'shape': (2,)}",
           "{'descr: '<f4', 'fortran_order': False, 'shape': (2,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}}",
           "{'de\\x73cr': '<f4', 'fortran_order': False, 'shape': (2,)}",
           "{'descr': __import__('os'), 'fortran_order': False, 'shape': (2,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}",
           "{'descr': '<f4', 'fortran_order': True, 'shape': (4611686018427387904, 4, 0)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1, 1, 1, 2)}",
           std::string("{'descr': '<f4'\0, 'fortran_order': False, 'shape': (2,)}", 56),
       }) {
    const auto file = bytes_of(npy(header, data));
    const test::AllocationWatch watch;
    EXPECT_THROW((void)parse_npy(file, "t"), FormatError) << header;
    EXPECT_LT(watch.largest(), 4096u) << header;
  }
}

TEST(Npy, SizesMustFitExactly) {
  const std::string good = npy(dict("<f4", "(2,)"), raw<float>({1, 2}));
  LAMINA_EXPECT_ERROR(parse(good + "x"), FormatError, "'t.npy' has 9 bytes of elements; (2) items of 4 bytes need 8");
  for (std::size_t n = 0; n < good.size(); ++n) {
    EXPECT_THROW((void)parse(good.substr(0, n)), FormatError) << n;
  }
  std::string long_header = good;  // a header length beyond the file
  long_header[8] = long_header[9] = '\xff';
  LAMINA_EXPECT_ERROR(parse(long_header), FormatError, "says its header has 65535 bytes");
  std::string four_gb = npy(dict("<f4", "(2,)"), raw<float>({1, 2}), 2);
  for (int i = 8; i < 12; ++i) four_gb[static_cast<std::size_t>(i)] = '\xff';
  const auto bytes = bytes_of(four_gb);
  const test::AllocationWatch watch;
  LAMINA_EXPECT_ERROR(parse_npy(bytes, "t"), FormatError, "4294967295");
  EXPECT_LT(watch.largest(), 4096u);
}

TEST(Npy, EveryHeaderByteDamaged) {
  const std::string good = npy(dict("<f4", "(3, 2)", true), raw<float>({1, 2, 3, 4, 5, 6}));
  for (std::size_t i = 0; i + 24 < good.size(); ++i) {
    for (const int value : std::vector<int>{0, 1, 0x7F, 0x80, 0xFF, '(', '\'', '9', ' '}) {
      std::string bad = good;
      bad[i] = static_cast<char>(value);
      try {
        EXPECT_LE(parse(bad).data.size(), 48u);
      } catch (const Error&) {
      }
    }
  }
}

TEST(Npy, WritesAndReadsBack) {
  const TempDir dir;
  const std::vector<std::int64_t> data = {1, -2, 3, 4, 5, 6};
  for (const int version : {1, 2}) {
    const WrittenFile written =
        write_npy(dir / "a.npy", DType::i64, Shape{2, 3}, std::as_bytes(std::span(data)), version);
    const std::string file = test::get(dir / "a.npy");
    EXPECT_EQ(written.bytes, file.size());
    EXPECT_EQ((file.size() - 48) % 64, 0u) << "elements begin at a multiple of 64";
    EXPECT_NE(file.find("{'descr': '<i8', 'fortran_order': False, 'shape': (2, 3), }"), std::string::npos);
    const NpyArray back = read_npy(dir / "a.npy");
    EXPECT_EQ(back.shape, (Shape{2, 3}));
    EXPECT_EQ(values<std::int64_t>(back), data);
  }
  write_npy(dir / "one.npy", DType::u8, Shape{3}, bytes_of("abc"));
  EXPECT_NE(test::get(dir / "one.npy").find("'descr': '|u1', 'fortran_order': False, 'shape': (3,), }"),
            std::string::npos);
  write_npy(dir / "scalar.npy", DType::u8, Shape{}, bytes_of("a"));
  EXPECT_EQ(read_npy(dir / "scalar.npy").shape, Shape{});
  LAMINA_EXPECT_ERROR(write_npy(dir / "b", DType::bf16, Shape{1}, bytes_of("ab")), DTypeError, "bf16");
  LAMINA_EXPECT_ERROR(write_npy(dir / "b", DType::u8, Shape{2}, bytes_of("a")), ShapeError, "1 bytes");
  LAMINA_EXPECT_ERROR(write_npy(dir / "b", DType::u8, Shape{1}, bytes_of("a"), 3), ValueError, "version 3");
  EXPECT_FALSE(std::filesystem::exists(dir / "b"));
  LAMINA_EXPECT_ERROR(read_npy(dir / "absent"), IoError, "absent'");
}

TEST(Npy, Tensors) {
  const TempDir dir;
  for (const bool reachable : {true, false}) {
    const Device device = test::host_device({.host_accessible = reachable});
    const Tensor t = Tensor::from<float>(device, Shape{2, 3}, {1, 2, 3, 4, 5, 6});
    save_npy(dir / "t.npy", t.transpose(0, 1));
    const Tensor back = load_npy(dir / "t.npy", device);
    EXPECT_EQ(back.shape(), (Shape{3, 2}));
    EXPECT_EQ(to_vector<float>(back), (std::vector<float>{1, 4, 2, 5, 3, 6}));
    save_npy(dir / "b.npy", Tensor::from_bytes(device, Shape{2}, DType::boolean, bytes_of(std::string("\0\1", 2))));
    EXPECT_EQ(to_vector<bool>(load_npy(dir / "b.npy", device)), (std::vector<bool>{false, true}));
  }
}

}  // namespace
}  // namespace lamina
