#include "lamina/core/io/safetensors.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "lamina/core/error.hpp"
#include "lamina/core/io/bytes.hpp"
#include "lamina/core/io/file.hpp"
#include "lamina/tests/io/allocation_watch.hpp"
#include "lamina/tests/support/host_device.hpp"
#include "lamina/tests/support/temp_dir.hpp"

namespace lamina {
namespace {

using test::bytes_of;
using test::get;
using test::put;
using test::TempDir;

std::string file_of(std::uint64_t header_length, const std::string& rest) {
  std::string out;
  for (int i = 0; i < 8; ++i) out += static_cast<char>(header_length >> (8 * i));
  return out + rest;
}

// A file with this header and `data` bytes of data.
std::string file_of(const std::string& header, std::size_t data = 0) {
  return file_of(header.size(), header + std::string(data, '\1'));
}

SafetensorsFile parse(const std::string& file) { return SafetensorsFile::parse(bytes_of(file), "t.st"); }

std::string tensor(const std::string& name, const std::string& dtype, const std::string& shape,
                   const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
}

TEST(Safetensors, ReadsAFileMadeByHand) {
  const SafetensorsFile file =
      parse(file_of("{" + tensor("b", "U8", "[2,2]", "[4,8]") + ",\"__metadata__\":{\"format\":\"pt\",\"\":\"\"}," +
                        tensor("a", "F32", "[]", "[0,4]") + "," + tensor("empty", "I64", "[0,3]", "[4,4]") + "}   ",
                    8));
  ASSERT_EQ(file.entries().size(), 3u);
  EXPECT_EQ(file.entries()[0].name, "a");
  EXPECT_EQ(file.entries()[1].name, "empty");
  EXPECT_EQ(file.entries()[2].name, "b");
  EXPECT_EQ(file.metadata(), (SafetensorsMetadata{{"format", "pt"}, {"", ""}}));
  EXPECT_EQ(file.at("b").dtype, DType::u8);
  EXPECT_EQ(file.at("b").shape, (Shape{2, 2}));
  EXPECT_EQ(file.read(file.at("b")), bytes_of("\1\1\1\1"));
  const Device device = test::host_device();
  EXPECT_EQ(file.tensor("empty", device).shape(), (Shape{0, 3}));
  EXPECT_EQ(to_vector<std::uint8_t>(file.tensor("b", device)), (std::vector<std::uint8_t>{1, 1, 1, 1}));
  EXPECT_EQ(file.find("c"), nullptr);
  LAMINA_EXPECT_ERROR(file.at("c"), ValueError, "'t.st' has no tensor 'c'");
  std::byte small[3];
  LAMINA_EXPECT_ERROR(file.read(file.at("b"), small), ShapeError, "room for 3 bytes");
  EXPECT_TRUE(parse(file_of("{}")).entries().empty());
  EXPECT_TRUE(parse(file_of("{\"__metadata__\":{}}")).metadata().empty());
}

// pains 5.02: every malformed file is a FormatError, and none makes us allocate more than it is long.
TEST(Safetensors, MalformedFiles) {
  const std::string good = tensor("a", "F32", "[2]", "[0,8]");
  const std::string nested = std::string(100'000, '[');
  std::vector<std::string> files = {
      // Lengths.
      "", "1234567", file_of(0, ""), file_of(0, "{}"), file_of(1, "{"), file_of(1, "{}"), file_of(3, "{}"),
      file_of(1'000'000, "{}"), file_of(std::numeric_limits<std::uint64_t>::max() - 3, "{}"),  // 2^64 - 4
      file_of(std::numeric_limits<std::uint64_t>::max(), "{}"), file_of(std::uint64_t{1} << 63, "{}"),
      file_of(std::uint64_t{2} << 56, "{}"),  // a length of 2 written by a big-endian host
      // Not the header's grammar.
      file_of("null"), file_of("[]"), file_of("\"a\""), file_of("{\"a\"}"), file_of("{'a':1}"), file_of("{} {}"),
      file_of("{}x"), file_of(" {}"), file_of("\xef\xbb\xbf{}"), file_of(std::string("{}\0\0", 4)),
      file_of("{\"a\":1}"), file_of("{\"a\":null}"), file_of("{\"a\":true}"), file_of("{\"a\":[]}"),
      file_of("{\"a\":\"b\"}"), file_of("{\"a\":{}}"), file_of("{\"\xff\":{}}"), file_of("{" + good + ",}", 8),
      file_of("{\"a\":" + nested, 8), file_of(nested, 8), file_of("{\"a\":{\"dtype\":" + nested, 8),
      file_of("{\"a\":{\"shape\":" + nested, 8), file_of("{\"__metadata__\":{\"a\":" + nested, 8),
      file_of("{\"__metadata__\":{\"a\":{}}}"), file_of("{\"__metadata__\":{\"a\":1}}"),
      file_of("{\"__metadata__\":[]}"), file_of("{\"__metadata__\":{},\"__metadata__\":{}}"),
      file_of("{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}"),
      // Fields.
      file_of("{" + good + "," + good + "}", 8),
      file_of("{" + good + ",\"\\u0061\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[8,8]}}", 8),
      file_of("{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8),
      file_of("{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,8]}}", 8),
      file_of("{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", 8),
      file_of("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8),
      file_of("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"shape\":[2],\"data_offsets\":[0,8]}}", 8),
      file_of("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"data_offsets\":[0,8]}}", 8),
      file_of("{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"strides\":[1]}}", 8),
      file_of("{" + tensor("a", "F7", "[2]", "[0,8]") + "}", 8),
      file_of("{" + tensor("a", "f32", "[2]", "[0,8]") + "}", 8),
      file_of("{" + tensor("a", "", "[2]", "[0,8]") + "}", 8),
      file_of("{\"a\":{\"dtype\":32,\"shape\":[2],\"data_offsets\":[0,8]}}", 8),
      // Shapes.
      file_of("{" + tensor("a", "F32", "2", "[0,8]") + "}", 8),
      file_of("{" + tensor("a", "F32", "[2.0]", "[0,8]") + "}", 8),
      file_of("{" + tensor("a", "F32", "[-2]", "[0,8]") + "}", 8),
      file_of("{" + tensor("a", "F32", "[-0]", "[0,0]") + "}"),
      file_of("{" + tensor("a", "F32", "[\"2\"]", "[0,8]") + "}", 8),
      file_of("{" + tensor("a", "F32", "[[2]]", "[0,8]") + "}", 8),
      file_of("{" + tensor("a", "F32", "[3]", "[0,8]") + "}", 8),
      file_of("{" + tensor("a", "F32", "[0]", "[0,8]") + "}", 8),
      file_of("{" + tensor("a", "F32", "[1,1,1,1,1,1,1,1,2]", "[0,8]") + "}", 8),
      file_of("{" + tensor("a", "F32", "[4294967296,4294967296]", "[0,0]") + "}"),   // 2^64 elements: 0 if it wraps
      file_of("{" + tensor("a", "F32", "[4611686018427387906]", "[0,8]") + "}", 8),  // 2^62+2: 8 bytes if it wraps
      file_of("{" + tensor("a", "F32", "[9007199254740991,1024]", "[0,8]") + "}", 8),
      file_of("{" + tensor("a", "F32", "[9007199254740992,0]", "[0,0]") + "}"),
      file_of("{" + tensor("a", "F32", "[9007199254740991,9007199254740991,0]", "[0,0]") + "}"),
      // Offsets.
      file_of("{" + tensor("a", "F32", "[2]", "[8,0]") + "}", 8),
      file_of("{" + tensor("a", "F32", "[2]", "[-8,0]") + "}", 8),
      file_of("{" + tensor("a", "F32", "[2]", "[0,8.0]") + "}", 8),
      file_of("{" + tensor("a", "F32", "[2]", "[0,8e0]") + "}", 8),
      file_of("{" + tensor("a", "F32", "[2]", "[0]") + "}", 8), file_of("{" + tensor("a", "F32", "[2]", "[]") + "}", 8),
      file_of("{" + tensor("a", "F32", "[2]", "[0,8,8]") + "}", 8),
      file_of("{" + tensor("a", "F32", "[2]", "[0,16]") + "}", 8),
      file_of("{" + tensor("a", "F32", "[2]", "[4,12]") + "}", 12),  // a hole at the beginning
      file_of("{" + tensor("a", "F32", "[2]", "[0,8]") + "}", 9),    // bytes after the end
      file_of("{" + tensor("a", "F32", "[2]", "[0,8]") + "}", 7),    // data cut short
      file_of("{" + tensor("a", "F32", "[2]", "[9007199254740992,9007199254741000]") + "}", 8),
      file_of("{" + tensor("a", "F32", "[2]", "[18446744073709551608,0]") + "}", 8),  // -8 when cast
      file_of("{" + tensor("a", "F32", "[2]", "[18446744073709551616,18446744073709551624]") + "}", 8),
      file_of("{" + good + "," + tensor("b", "F32", "[2]", "[4,12]") + "}", 12),   // overlap
      file_of("{" + good + "," + tensor("b", "F32", "[2]", "[0,8]") + "}", 8),     // the same bytes twice
      file_of("{" + good + "," + tensor("b", "F32", "[2]", "[12,20]") + "}", 20),  // a hole
      file_of("{" + tensor("a", "F32", "[4]", "[0,16]") + "," + tensor("b", "U8", "[4]", "[4,8]") + "}", 16),  // inside
      file_of("{" + tensor("a", "F4", "[3]", "[0,1]") + "}", 1),  // half a byte
  };
  EXPECT_GE(files.size(), 60u);
  for (std::size_t i = 0; i < files.size(); ++i) {
    std::vector<std::byte> bytes = bytes_of(files[i]);
    const std::size_t size = bytes.size();
    const test::AllocationWatch watch;
    try {
      (void)SafetensorsFile::parse(std::move(bytes), "t");
      ADD_FAILURE() << i << ": " << files[i].substr(0, 200);
    } catch (const FormatError& error) {
      EXPECT_LT(std::strlen(error.what()), 600u);
    } catch (const std::exception& error) {
      ADD_FAILURE() << i << ": " << error.what();
    }
    EXPECT_LE(watch.largest(), size + 1024) << i << ": " << files[i].substr(0, 200);
  }
}

TEST(Safetensors, MessagesNameFileTensorAndNumbers) {
  LAMINA_EXPECT_ERROR(parse(file_of("{" + tensor("w", "F32", "[3]", "[0,8]") + "}", 8)), FormatError,
                      "safetensors: 't.st': tensor 'w': F32(3) does not fill the 8 bytes");
  LAMINA_EXPECT_ERROR(parse(file_of("{" + tensor("w", "F32", "[2]", "[8,0]") + "}", 8)), FormatError,
                      "tensor 'w': the offsets [8, 0] are reversed");
  LAMINA_EXPECT_ERROR(parse(file_of("{" + tensor("w\\u001b[2J", "F9", "[2]", "[8,0]") + "}", 8)), FormatError,
                      "tensor 'w\\x1b[2J': the format has no dtype 'F9'");
  LAMINA_EXPECT_ERROR(parse(file_of("{\"w\" 3}")), FormatError, "not JSON: error at its byte");
  LAMINA_EXPECT_ERROR(SafetensorsFile::open("/nonexistent.st"), IoError, "No such file");
}

TEST(Safetensors, AHeaderOverTheFormatsBoundIsRefusedUnread) {
  const TempDir dir;
  put(dir / "f", file_of(100'000'001, "{}"));
  std::filesystem::resize_file(dir / "f", 200'000'000);  // a sparse file: the length fits it
  const test::AllocationWatch watch;
  LAMINA_EXPECT_ERROR(SafetensorsFile::open(dir / "f"), FormatError, "at most 100000000 are allowed");
  EXPECT_LT(watch.largest(), 4096u);
}

TEST(Safetensors, TypesTheEngineLacksAreListedButNotLoaded) {
  const SafetensorsFile file =
      parse(file_of("{" + tensor("f8", "F8_E4M3", "[2]", "[0,2]") + "," + tensor("f4", "F4", "[4]", "[2,4]") + "," +
                        tensor("f6", "F6_E2M3", "[4]", "[4,7]") + "," + tensor("i8", "I8", "[1]", "[7,8]") + "}",
                    8));
  EXPECT_EQ(file.at("f8").type, "F8_E4M3");
  EXPECT_FALSE(file.at("f8").dtype);
  EXPECT_EQ(file.read(file.at("f6")).size(), 3u);
  LAMINA_EXPECT_ERROR(file.tensor("f8", test::host_device()), DTypeError, "'t.st': tensor 'f8' is F8_E4M3");
}

TEST(Safetensors, BoolsAreCheckedWhenLoaded) {
  std::string text = file_of("{" + tensor("b", "BOOL", "[3]", "[0,3]") + "}", 3);
  EXPECT_EQ(to_vector<bool>(parse(text).tensor("b", test::host_device())), (std::vector<bool>{true, true, true}));
  text.back() = '\2';
  LAMINA_EXPECT_ERROR(parse(text).tensor("b", test::host_device()), FormatError, "element 2 of a bool array");
}

TEST(Safetensors, WritesSortedAlignedAndTheSameEachTime) {
  const TempDir dir;
  const std::vector<float> w = {1, 2, 3};
  const std::vector<std::int64_t> n = {-1};
  const std::vector<std::byte> abc = bytes_of("abc");
  std::vector<SafetensorsItem> items = {
      {"z.bytes", DType::u8, Shape{3}, abc},
      {"b.weight", DType::f32, Shape{3}, std::as_bytes(std::span(w))},
      {"a.weight", DType::f32, Shape{3, 1}, std::as_bytes(std::span(w))},
      {"n", DType::i64, Shape{}, std::as_bytes(std::span(n))},
      {"none", DType::f64, Shape{0}, {}},
  };
  const WrittenFile written = write_safetensors(dir / "f", items, {{"step", "7"}, {"note", "\"é\"\n"}});
  const std::string text = get(dir / "f");
  EXPECT_EQ(written, (WrittenFile{text.size(), hash_bytes(bytes_of(text))}));
  EXPECT_EQ(load_little<std::uint64_t>(bytes_of(text).data()) % 8, 0u);
  const SafetensorsFile file = SafetensorsFile::open(dir / "f");
  std::vector<std::string> names;
  for (const auto& entry : file.entries()) {
    names.push_back(entry.name);
    EXPECT_EQ(entry.offset % size_of(*entry.dtype), 0u);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"n", "none", "a.weight", "b.weight", "z.bytes"}));
  EXPECT_EQ(file.metadata().at("note"), "\"é\"\n");
  EXPECT_EQ(file.read(file.at("z.bytes")), abc);
  std::reverse(items.begin(), items.end());
  EXPECT_EQ(write_safetensors(dir / "g", items, file.metadata()), written);
  EXPECT_EQ(get(dir / "g"), text);
  // Exact bytes, so that the layout cannot change unnoticed.
  write_safetensors(dir / "h", std::span(items).last(1));
  const std::string header = "{\"z.bytes\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]}}";
  EXPECT_EQ(get(dir / "h"), file_of(header + std::string(8 - header.size() % 8, ' ')) + "abc");
}

TEST(Safetensors, WriterRefusals) {
  const TempDir dir;
  const auto bytes = bytes_of("ab");
  const SafetensorsItem good{"a", DType::u8, Shape{2}, bytes};
  const auto save = [&](std::vector<SafetensorsItem> items, const SafetensorsMetadata& metadata = {}) {
    return write_safetensors(dir / "f", items, metadata);
  };
  LAMINA_EXPECT_ERROR(save({good, good}), ValueError, "'a' is given twice");
  LAMINA_EXPECT_ERROR(save({{"__metadata__", DType::u8, Shape{2}, bytes}}), ValueError, "reserved");
  LAMINA_EXPECT_ERROR(save({{"\xff", DType::u8, Shape{2}, bytes}}), ValueError, "not UTF-8");
  LAMINA_EXPECT_ERROR(save({good}, {{"k", "\xff"}}), ValueError, "not UTF-8");
  LAMINA_EXPECT_ERROR(save({good, {"b", DType::u8, Shape{3}, bytes}}), ShapeError,
                      "2 bytes given for tensor 'b', u8(3)");
  EXPECT_TRUE(dir.names().empty());
}

TEST(Safetensors, TensorsOfEveryTypeAndLayoutRoundTrip) {
  const TempDir dir;
  for (const bool reachable : {true, false}) {
    const Device device = test::host_device({.host_accessible = reachable});
    std::vector<NamedTensor> tensors;
    for (int i = 0; i < kDTypeCount; ++i) {
      const auto dtype = static_cast<DType>(i);
      std::vector<std::byte> bytes(6 * size_of(dtype));
      for (std::size_t b = 0; b < bytes.size(); ++b)
        bytes[b] = static_cast<std::byte>(dtype == DType::boolean ? b % 2 : b * 7);
      const Tensor t = Tensor::from_bytes(device, Shape{2, 3}, dtype, bytes);
      tensors.push_back({std::string(name_of(dtype)), t});
      tensors.push_back({std::string(name_of(dtype)) + ".t", t.transpose(0, 1)});
      tensors.push_back({std::string(name_of(dtype)) + ".row", t.slice(0, 1, 2)});
      tensors.push_back({std::string(name_of(dtype)) + ".none", t.slice(0, 1, 1)});
    }
    write_safetensors(dir / "f", tensors);
    const SafetensorsFile file = SafetensorsFile::open(dir / "f");
    ASSERT_EQ(file.entries().size(), tensors.size());
    for (const NamedTensor& t : tensors) {
      const Tensor back = file.tensor(t.name, device);
      EXPECT_EQ(back.meta(), t.tensor.meta()) << t.name;
      std::vector<std::byte> expected, found;
      with_bytes(t.tensor, [&](auto bytes) { expected.assign(bytes.begin(), bytes.end()); });
      with_bytes(back, [&](auto bytes) { found.assign(bytes.begin(), bytes.end()); });
      EXPECT_EQ(found, expected) << t.name;
    }
  }
  LAMINA_EXPECT_ERROR(write_safetensors(dir / "g", std::vector<NamedTensor>{{"u", Tensor()}}), DeviceError,
                      "'u' is undefined");
  const Device shapes = test::host_device({.storage = false});
  EXPECT_EQ(SafetensorsFile::open(dir / "f").tensor("f32", shapes).shape(), (Shape{2, 3}));
}

TEST(Safetensors, ReadsOnlyWhatIsAskedFor) {
  const TempDir dir;
  const std::string header = "{" + tensor("big", "F32", "[250000000]", "[0,1000000000]") + "," +
                             tensor("small", "F32", "[2]", "[1000000000,1000000008]") + "}";
  put(dir / "f", file_of(header));
  std::filesystem::resize_file(dir / "f", 8 + header.size() + 1'000'000'008);  // sparse
  const test::AllocationWatch watch;
  const SafetensorsFile file = SafetensorsFile::open(dir / "f");
  EXPECT_EQ(file.at("big").bytes, 1'000'000'000u);
  EXPECT_EQ(to_vector<float>(file.tensor("small", test::host_device())), (std::vector<float>{0, 0}));
  EXPECT_LT(watch.largest(), 10'000u);
}

TEST(Safetensors, CutAtEveryByteAndEveryByteDamaged) {
  const TempDir dir;
  const std::vector<float> w = {1, 2, 3, 4};
  const std::vector<SafetensorsItem> items = {{"w", DType::f32, Shape{2, 2}, std::as_bytes(std::span(w))},
                                              {"n", DType::boolean, Shape{}, std::as_bytes(std::span(w)).first(1)}};
  write_safetensors(dir / "f", items, {{"k", "v"}});
  const std::string good = get(dir / "f");
  for (std::size_t n = 0; n < good.size(); ++n) {
    EXPECT_THROW((void)parse(good.substr(0, n)), FormatError) << n;
  }
  const Device device = test::host_device();
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (const int value : std::vector<int>{0, 1, 0x7F, 0x80, 0xFF, good[i] - 1, good[i] + 1, '9', '"', '}'}) {
      std::string bad = good;
      bad[i] = static_cast<char>(value);
      try {
        const SafetensorsFile file = parse(bad);
        for (const auto& entry : file.entries()) (void)file.tensor(entry.name, device);
      } catch (const Error& error) {
        EXPECT_EQ(std::string_view(error.what()).find('\n'), std::string_view::npos);
      }
    }
  }
  // Integer fields of the header: 0, the largest, and one more or less.
  const std::string base = "{" + tensor("w", "F32", "[2,2]", "[0,16]") + "}";
  for (const std::string_view field : {"[2,2]", "[0,16]"}) {
    for (const std::string_view with :
         {"[0,2]", "[1,2]", "[3,2]", "[-1,2]", "[9007199254740991,2]", "[18446744073709551615,2]", "[2,0]", "[2,1]",
          "[2,3]", "[2,-1]", "[2,9223372036854775807]", "[1,16]", "[0,15]", "[0,17]", "[0,0]", "[16,0]"}) {
      std::string header = base;
      header.replace(header.find(field), field.size(), with);
      EXPECT_THROW((void)parse(file_of(header, 16)), FormatError) << header;
    }
  }
}

}  // namespace
}  // namespace lamina
