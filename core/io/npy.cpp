#include "lamina/core/io/npy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <string>

#include "lamina/core/error.hpp"
#include "lamina/core/io/bytes.hpp"
#include "lamina/core/io/file.hpp"

namespace lamina {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

// What the header says of the elements.
struct Elements {
  char kind = 'f';       // b, i, u, f
  std::size_t size = 4;  // bytes in the file
  bool swap = false;     // not in the host's byte order
  DType dtype = DType::f32;
};

struct Header {
  Elements elements;
  bool fortran = false;
  Shape shape;
  std::uint64_t data_at = 0;
};

// Parses the header's dictionary, a small subset of Python's literals. Every position is checked; nothing recurses.
class HeaderText {
 public:
  HeaderText(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  void parse(Header& header) {
    std::optional<std::string> descr;
    std::optional<bool> fortran;
    bool shaped = false;
    expect('{');
    while (!take('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr" && !descr) {
        skip_blanks();
        if (at() == '[') {
          fail<DTypeError>("npy", "{}: structured element types are not supported", quote(file_));
        }
        descr = string();
      } else if (key == "fortran_order" && !fortran) {
        fortran = boolean();
      } else if (key == "shape" && !shaped) {
        shaped = true;
        header.shape = shape();
      } else {
        broken("the key " + quote(key) + " is unknown or given twice");
      }
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    skip_blanks();
    if (pos_ != text_.size()) broken("text after the dictionary");
    if (!descr || !fortran || !shaped) broken("one of the keys 'descr', 'fortran_order', 'shape' is missing");
    header.fortran = *fortran;
    header.elements = elements(*descr);
  }

 private:
  [[noreturn]] void broken(std::string_view what) const {
    fail<FormatError>("npy", "{}: header, byte {}: {}", quote(file_), pos_, what);
  }
  char at() const { return pos_ < text_.size() ? text_[pos_] : '\0'; }
  void skip_blanks() {
    while (pos_ < text_.size() && (text_[pos_] == ' ' || text_[pos_] == '\n' || text_[pos_] == '\t')) ++pos_;
  }
  bool take(char c) {
    skip_blanks();
    if (at() != c || pos_ == text_.size()) return false;
    ++pos_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) broken(fmt::format("'{}' expected", c));
  }
  bool word(std::string_view w) {
    if (!text_.substr(pos_).starts_with(w)) return false;
    pos_ += w.size();
    return true;
  }

  std::string string() {
    skip_blanks();
    const char quote = at();
    if (quote != '\'' && quote != '"') broken("a string expected");
    const auto end = text_.find(quote, pos_ + 1);
    if (end == std::string_view::npos) broken("a string without an end");
    const std::string_view body = text_.substr(pos_ + 1, end - pos_ - 1);
    if (body.find('\\') != std::string_view::npos) broken("a string with an escape");  // no key or simple type has one
    pos_ = end + 1;
    return std::string(body);
  }

  bool boolean() {
    skip_blanks();
    if (word("True")) return true;
    if (word("False")) return false;
    broken("True or False expected");
  }

  Shape shape() {
    std::array<std::int64_t, kMaxRank> dims{};
    std::size_t rank = 0;
    expect('(');
    bool comma = true;
    while (!take(')')) {
      if (!comma) broken("',' or ')' expected");
      if (rank == kMaxRank) broken(fmt::format("more than {} dims", kMaxRank));
      dims[rank++] = integer();
      comma = take(',');
    }
    if (rank == 1 && !comma) broken("a shape of one dim is written '(3,)'");
    return file_shape("npy", file_, std::span<const std::int64_t>(dims.data(), rank));
  }

  std::int64_t integer() {
    skip_blanks();
    if (at() < '0' || at() > '9') broken("an extent >= 0 expected");
    std::int64_t value = 0;
    for (; at() >= '0' && at() <= '9'; ++pos_) {
      if (__builtin_mul_overflow(value, std::int64_t{10}, &value) ||
          __builtin_add_overflow(value, std::int64_t{at() - '0'}, &value)) {
        broken("an extent that overflows 63 bits");
      }
    }
    word("L");  // Python 2
    return value;
  }

  Elements elements(std::string_view descr) const {
    Elements e;
    std::string_view rest = descr;
    bool little = std::endian::native == std::endian::little;
    if (!rest.empty() && std::string_view("<>|=").find(rest[0]) != std::string_view::npos) {
      if (rest[0] == '<') little = true;
      if (rest[0] == '>') little = false;
      rest.remove_prefix(1);
    }
    if (rest.starts_with('O')) {
      fail<DTypeError>("npy", "{} holds Python objects, which would have to be run to be read; refused", quote(file_));
    }
    struct Known {
      std::string_view name;
      DType dtype;
    };
    static constexpr Known known[] = {
        {"b1", DType::boolean}, {"?", DType::boolean}, {"u1", DType::u8},  {"i1", DType::i32}, {"i2", DType::i32},
        {"u2", DType::i32},     {"i4", DType::i32},    {"u4", DType::i64}, {"i8", DType::i64}, {"u8", DType::i64},
        {"f2", DType::f16},     {"f4", DType::f32},    {"f8", DType::f64}};
    const auto* found =
        std::find_if(std::begin(known), std::end(known), [&](const Known& k) { return k.name == rest; });
    if (found == std::end(known)) {
      fail<DTypeError>("npy", "{}: element type {} is not supported; b1, i1 to i8, u1 to u8, f2, f4 and f8 are",
                       quote(file_), quote(descr));
    }
    e.kind = rest == "?" ? 'b' : rest[0];
    e.size = rest == "?" ? 1 : static_cast<std::size_t>(rest[1] - '0');
    e.dtype = found->dtype;
    e.swap = e.size > 1 && little != (std::endian::native == std::endian::little);
    return e;
  }

  std::string_view text_;
  std::string_view file_;
  std::size_t pos_ = 0;
};

// Where a file's bytes come from: memory or a descriptor.
struct Source {
  std::uint64_t size;
  std::function<void(std::uint64_t offset, std::span<std::byte> out)> read;
};

Header read_header(const Source& source, std::string_view name) {
  std::array<std::byte, 12> head{};
  const auto have = static_cast<std::size_t>(std::min<std::uint64_t>(head.size(), source.size));
  source.read(0, std::span(head).first(have));
  if (have < 10 || std::memcmp(head.data(), kMagic.data(), kMagic.size()) != 0) {
    fail<FormatError>("npy", "{} does not begin as a .npy file does", quote(name));
  }
  const int version = std::to_integer<int>(head[6]);
  if (version < 1 || version > 3 || head[7] != std::byte{0}) {
    fail<FormatError>("npy", "{} has version {}.{}; 1.0, 2.0 and 3.0 are known", quote(name), version,
                      std::to_integer<int>(head[7]));
  }
  const std::uint64_t text_at = version == 1 ? 10 : 12;
  const std::uint64_t length =
      version == 1 ? load_little<std::uint16_t>(head.data() + 8) : load_little<std::uint32_t>(head.data() + 8);
  if (source.size < text_at || length > source.size - text_at) {
    fail<FormatError>("npy", "{} says its header has {} bytes; the file has {}", quote(name), length, source.size);
  }
  std::string text(static_cast<std::size_t>(length), '\0');
  source.read(text_at, std::as_writable_bytes(std::span(text.data(), text.size())));
  Header header;
  HeaderText(text, name).parse(header);
  header.data_at = text_at + length;
  return header;
}

// Row-major from column-major. Walks the result in order; the source index moves by the column-major strides.
std::vector<std::byte> from_fortran(const std::vector<std::byte>& from, const Shape& shape, std::size_t item) {
  std::vector<std::byte> out(from.size());
  const int rank = shape.rank();
  std::array<std::int64_t, kMaxRank> strides{};
  std::array<std::int64_t, kMaxRank> index{};
  std::int64_t stride = 1;
  for (int i = 0; i < rank; ++i) {
    strides[static_cast<std::size_t>(i)] = stride;
    stride *= shape[i];
  }
  std::int64_t at = 0;
  for (std::size_t to = 0; to < out.size(); to += item) {
    std::memcpy(out.data() + to, from.data() + static_cast<std::size_t>(at) * item, item);
    for (int i = rank - 1; i >= 0; --i) {
      const auto d = static_cast<std::size_t>(i);
      at += strides[d];
      if (++index[d] < shape[i]) break;
      at -= index[d] * strides[d];
      index[d] = 0;
    }
  }
  return out;
}

template <class From, class To>
std::vector<std::byte> widen(const std::vector<std::byte>& from, std::string_view name) {
  const std::size_t count = from.size() / sizeof(From);
  std::vector<std::byte> out(count * sizeof(To));
  for (std::size_t i = 0; i < count; ++i) {
    From value;
    std::memcpy(&value, from.data() + i * sizeof(From), sizeof(From));
    if constexpr (std::is_same_v<From, std::uint64_t>) {
      if (value > static_cast<std::uint64_t>(std::numeric_limits<To>::max())) {
        fail<DTypeError>("npy", "{}: element {} is {}, which i64 cannot hold", quote(name), i, value);
      }
    }
    const auto wide = static_cast<To>(value);
    std::memcpy(out.data() + i * sizeof(To), &wide, sizeof(To));
  }
  return out;
}

NpyArray read_from(const Source& source, std::string_view name) {
  const Header header = read_header(source, name);
  const Elements& e = header.elements;
  const std::uint64_t bytes = file_bytes("npy", name, header.shape, e.size);
  if (bytes != source.size - header.data_at) {
    fail<FormatError>("npy", "{} has {} bytes of elements; {} items of {} bytes need {}", quote(name),
                      source.size - header.data_at, to_string(header.shape), e.size, bytes);
  }
  NpyArray array{e.dtype, header.shape, std::vector<std::byte>(static_cast<std::size_t>(bytes))};
  source.read(header.data_at, array.data);
  if (e.swap) swap_items(array.data, e.size);
  if (header.fortran && header.shape.rank() > 1) array.data = from_fortran(array.data, header.shape, e.size);
  if (e.kind == 'b') check_bools("npy", name, array.data);
  if (e.kind == 'i' && e.size == 1) array.data = widen<std::int8_t, std::int32_t>(array.data, name);
  if (e.kind == 'i' && e.size == 2) array.data = widen<std::int16_t, std::int32_t>(array.data, name);
  if (e.kind == 'u' && e.size == 2) array.data = widen<std::uint16_t, std::int32_t>(array.data, name);
  if (e.kind == 'u' && e.size == 4) array.data = widen<std::uint32_t, std::int64_t>(array.data, name);
  if (e.kind == 'u' && e.size == 8) array.data = widen<std::uint64_t, std::int64_t>(array.data, name);
  return array;
}

std::string_view code_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return "f4";
    case DType::f64: return "f8";
    case DType::f16: return "f2";
    case DType::i32: return "i4";
    case DType::i64: return "i8";
    case DType::u8: return "u1";
    case DType::boolean: return "b1";
    case DType::bf16: break;
  }
  fail<DTypeError>("npy", "the format has no type for {}", name_of(dtype));
}

std::string header_text(DType dtype, const Shape& shape, int version) {
  if (version != 1 && version != 2) fail<ValueError>("npy", "version {} cannot be written; 1 and 2 can", version);
  const std::string dims = fmt::format("{}{}", fmt::join(shape.dims(), ", "), shape.rank() == 1 ? "," : "");
  const char order = size_of(dtype) == 1 ? '|' : std::endian::native == std::endian::little ? '<' : '>';
  std::string text =
      fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}", order, code_of(dtype), dims);
  // Elements begin at a multiple of 64.
  const std::size_t fixed = version == 1 ? 10 : 12;
  text.append(63 - (fixed + text.size()) % 64, ' ');
  text += '\n';
  std::string out(kMagic);
  out += static_cast<char>(version);
  out += '\0';
  std::array<std::byte, 4> length{};
  store_little(length.data(), static_cast<std::uint32_t>(text.size()));
  out.append(reinterpret_cast<const char*>(length.data()), version == 1 ? 2 : 4);
  return out + text;
}

}  // namespace

NpyArray parse_npy(std::span<const std::byte> file, std::string_view name) {
  const Source source{file.size(), [&](std::uint64_t offset, std::span<std::byte> out) {
                        const auto from = file.subspan(static_cast<std::size_t>(offset), out.size());
                        std::copy(from.begin(), from.end(), out.begin());
                      }};
  return read_from(source, name);
}

NpyArray read_npy(const std::filesystem::path& path) {
  const ReadFile file(path);
  const Source source{file.size(), [&](std::uint64_t offset, std::span<std::byte> out) { file.read_at(offset, out); }};
  return read_from(source, path.native());
}

WrittenFile write_npy(const std::filesystem::path& path, DType dtype, const Shape& shape,
                      std::span<const std::byte> data, int version) {
  if (data.size() != file_bytes("npy", path.native(), shape, size_of(dtype))) {
    fail<ShapeError>("npy", "{} bytes given for {}{}", data.size(), name_of(dtype), to_string(shape));
  }
  const std::string header = header_text(dtype, shape, version);
  AtomicFile file(path);
  file.write(header);
  file.write(data);
  return file.commit();
}

Tensor load_npy(const std::filesystem::path& path, const Device& device) {
  const NpyArray array = read_npy(path);
  return Tensor::from_bytes(device, array.shape, array.dtype, array.data);
}

WrittenFile save_npy(const std::filesystem::path& path, const Tensor& tensor) {
  WrittenFile written;
  with_bytes(tensor, [&](std::span<const std::byte> bytes) {
    written = write_npy(path, tensor.dtype(), tensor.shape(), bytes);
  });
  return written;
}

}  // namespace lamina
