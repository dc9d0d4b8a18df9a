#include "lamina/core/io/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>

#include "lamina/core/error.hpp"
#include "lamina/core/io/bytes.hpp"
#include "lamina/core/io/file.hpp"

namespace lamina {

namespace {

using nlohmann::json;

constexpr std::uint64_t kMaxHeader = 100'000'000;                    // the format's own bound
constexpr std::uint64_t kMaxInteger = (std::uint64_t{1} << 53) - 1;  // what every JSON reader reads exactly
constexpr std::string_view kMetadataKey = "__metadata__";

struct Type {
  std::string_view name;
  unsigned bits;
  std::optional<DType> dtype;
};

constexpr Type kTypes[] = {
    {"BOOL", 8, DType::boolean},
    {"U8", 8, DType::u8},
    {"F16", 16, DType::f16},
    {"BF16", 16, DType::bf16},
    {"I32", 32, DType::i32},
    {"F32", 32, DType::f32},
    {"I64", 64, DType::i64},
    {"F64", 64, DType::f64},
    {"I8", 8, {}},
    {"I16", 16, {}},
    {"U16", 16, {}},
    {"U32", 32, {}},
    {"U64", 64, {}},
    {"C64", 64, {}},
    {"F4", 4, {}},
    {"F6_E2M3", 6, {}},
    {"F6_E3M2", 6, {}},
    {"F8_E4M3", 8, {}},
    {"F8_E5M2", 8, {}},
    {"F8_E8M0", 8, {}},
    {"F8_E4M3FNUZ", 8, {}},
    {"F8_E5M2FNUZ", 8, {}},
};

const Type* find_type(std::string_view name) {
  const auto* found = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const Type& t) { return t.name == name; });
  return found == std::end(kTypes) ? nullptr : found;
}

std::string_view type_of(DType dtype) {
  return std::find_if(std::begin(kTypes), std::end(kTypes), [&](const Type& t) { return t.dtype == dtype; })->name;
}

// A tensor as the header states it, not yet compared with anything but the grammar.
struct Claim {
  std::string name;
  const Type* type = nullptr;
  std::vector<std::int64_t> shape;
  std::vector<std::uint64_t> offsets;
  bool has_shape = false;
  bool has_offsets = false;
};

// Takes the JSON events of a header and accepts the format's grammar only: any other event throws at once, so that
// neither depth nor size of what is built can exceed what the header's own bytes justify.
class HeaderReader final : public nlohmann::json_sax<json> {
 public:
  HeaderReader(std::string_view file, std::vector<Claim>& claims, SafetensorsMetadata& metadata)
      : file_(file), claims_(claims), metadata_(metadata) {}

  bool start_object(std::size_t /*size*/) override {
    if (state_ == State::begin) {
      state_ = State::top;
    } else if (state_ == State::tensor) {
      state_ = State::fields;
    } else if (state_ == State::metadata) {
      state_ = State::entries;
    } else {
      unexpected("an object");
    }
    return true;
  }

  bool key(std::string& key) override {
    if (state_ == State::top) {
      if (key == kMetadataKey) {
        if (has_metadata_) broken("the key '__metadata__' is given twice");
        has_metadata_ = true;
        state_ = State::metadata;
        return true;
      }
      if (!names_.emplace(key, 0).second) broken(fmt::format("the tensor {} is given twice", quote(key)));
      claims_.emplace_back().name = key;
      state_ = State::tensor;
    } else if (state_ == State::entries) {
      if (metadata_.contains(key)) broken(fmt::format("the metadata key {} is given twice", quote(key)));
      entry_ = key;
      state_ = State::value;
    } else {  // State::fields
      if (key == "dtype" && claim().type == nullptr) {
        state_ = State::type;
      } else if (key == "shape" && !claim().has_shape) {
        claim().has_shape = true;
        state_ = State::shape;
      } else if (key == "data_offsets" && !claim().has_offsets) {
        claim().has_offsets = true;
        state_ = State::offsets;
      } else {
        broken(fmt::format("the field {} is unknown or given twice", quote(key)));
      }
    }
    return true;
  }

  bool string(std::string& text) override {
    if (state_ == State::value) {
      metadata_.emplace(std::move(entry_), text);
      state_ = State::entries;
    } else if (state_ == State::type) {
      claim().type = find_type(text);
      if (claim().type == nullptr) broken(fmt::format("the format has no dtype {}", quote(text)));
      state_ = State::fields;
    } else {
      unexpected("a string");
    }
    return true;
  }

  bool start_array(std::size_t /*size*/) override {
    if (state_ == State::shape) {
      state_ = State::shape_items;
    } else if (state_ == State::offsets) {
      state_ = State::offsets_items;
    } else {
      unexpected("an array");
    }
    return true;
  }

  bool number_unsigned(std::uint64_t value) override {
    if (state_ != State::shape_items && state_ != State::offsets_items) unexpected("a number");
    if (value > kMaxInteger) broken(fmt::format("the number {} is not below 2^53", value));
    if (state_ == State::shape_items) {
      if (claim().shape.size() == kMaxRank) broken(fmt::format("more than {} dims are not supported", kMaxRank));
      claim().shape.push_back(static_cast<std::int64_t>(value));
    } else {
      if (claim().offsets.size() == 2) broken("data_offsets has more than 2 numbers");
      claim().offsets.push_back(value);
    }
    return true;
  }

  bool end_array() override {
    if (state_ == State::offsets_items && claim().offsets.size() != 2) {
      broken(fmt::format("data_offsets has {} number(s), not 2", claim().offsets.size()));
    }
    state_ = State::fields;
    return true;
  }

  bool end_object() override {
    if (state_ == State::fields) {
      if (claim().type == nullptr || !claim().has_shape || !claim().has_offsets) {
        broken("one of 'dtype', 'shape', 'data_offsets' is missing");
      }
      state_ = State::top;
    } else if (state_ == State::entries) {
      state_ = State::top;
    } else {
      state_ = State::end;
    }
    return true;
  }

  bool number_integer(std::int64_t value) override { broken(fmt::format("the number {} is negative", value)); }
  bool number_float(double /*value*/, const std::string& text) override {
    broken(fmt::format("the number {} is no integer that fits 64 bits", quote(text)));
  }
  bool null() override { unexpected("null"); }
  bool boolean(bool /*value*/) override { unexpected("a truth value"); }
  bool binary(json::binary_t& /*value*/) override { unexpected("binary data"); }
  bool parse_error(std::size_t position, const std::string& /*token*/, const nlohmann::detail::exception&) override {
    fail<FormatError>("safetensors", "{}: the header is not JSON: error at its byte {}", quote(file_), position);
  }

 private:
  enum class State {
    begin,
    top,     // in the outer object
    tensor,  // a tensor's name was read
    fields,  // in a tensor's object
    type,    // "dtype" was read; and so on
    shape,
    shape_items,
    offsets,
    offsets_items,
    metadata,
    entries,  // in the metadata's object
    value,
    end
  };

  Claim& claim() { return claims_.back(); }
  [[noreturn]] void broken(std::string_view what) {
    const bool in_tensor = !claims_.empty() && state_ >= State::fields && state_ <= State::offsets_items;
    if (in_tensor) {
      fail<FormatError>("safetensors", "{}: tensor {}: {}", quote(file_), quote(claim().name), what);
    }
    fail<FormatError>("safetensors", "{}: header: {}", quote(file_), what);
  }
  [[noreturn]] void unexpected(std::string_view what) { broken(fmt::format("{} where the format allows none", what)); }

  std::string_view file_;
  std::vector<Claim>& claims_;
  SafetensorsMetadata& metadata_;
  std::map<std::string, int> names_;
  std::string entry_;
  State state_ = State::begin;
  bool has_metadata_ = false;
};

}  // namespace

struct SafetensorsFile::State {
  std::string name;
  std::vector<Entry> entries;
  std::map<std::string, std::size_t, std::less<>> index;
  SafetensorsMetadata metadata;
  std::optional<ReadFile> file;  // one of these two holds the bytes
  std::vector<std::byte> memory;

  std::uint64_t size() const { return file ? file->size() : memory.size(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const {
    if (file) return file->read_at(offset, out);
    const auto from = std::span(memory).subspan(static_cast<std::size_t>(offset), out.size());
    std::copy(from.begin(), from.end(), out.begin());
  }
  void parse_header();
  void add_entries(std::vector<Claim> claims, std::uint64_t data_at);
};

void SafetensorsFile::State::parse_header() {
  std::array<std::byte, 8> prefix{};
  if (size() < prefix.size()) {
    fail<FormatError>("safetensors", "{} has {} bytes; the header length alone has 8", quote(name), size());
  }
  read(0, prefix);
  const auto length = load_little<std::uint64_t>(prefix.data());
  if (length > size() - prefix.size() || length > kMaxHeader) {
    fail<FormatError>("safetensors", "{} says its header has {} bytes; the file has {}, and at most {} are allowed",
                      quote(name), length, size(), kMaxHeader);
  }
  std::string text(static_cast<std::size_t>(length), '\0');
  read(prefix.size(), std::as_writable_bytes(std::span(text.data(), text.size())));
  // The JSON parser skips a byte-order mark, and takes a NUL byte for the end of the text.
  if (!text.starts_with('{')) fail<FormatError>("safetensors", "{}: the header does not begin with '{{'", quote(name));
  if (text.find('\0') != std::string::npos) {
    fail<FormatError>("safetensors", "{}: the header holds a NUL byte", quote(name));
  }
  std::vector<Claim> claims;
  HeaderReader reader(name, claims, metadata);
  json::sax_parse(text.begin(), text.end(), &reader);
  add_entries(std::move(claims), prefix.size() + length);
}

void SafetensorsFile::State::add_entries(std::vector<Claim> claims, std::uint64_t data_at) {
  std::sort(claims.begin(), claims.end(),
            [](const Claim& a, const Claim& b) { return std::tie(a.offsets, a.name) < std::tie(b.offsets, b.name); });
  const std::uint64_t data_bytes = size() - data_at;
  std::uint64_t expected = 0;
  entries.reserve(claims.size());
  for (Claim& claim : claims) {
    const auto broken = [&](const std::string& what) {
      fail<FormatError>("safetensors", "{}: tensor {}: {}", quote(name), quote(claim.name), what);
    };
    const std::uint64_t begin = claim.offsets[0];
    const std::uint64_t end = claim.offsets[1];
    if (end < begin) broken(fmt::format("the offsets [{}, {}] are reversed", begin, end));
    if (end > data_bytes) broken(fmt::format("it ends at {}, the data at {}", end, data_bytes));
    if (begin < expected) broken(fmt::format("its bytes from {} on overlap those before {}", begin, expected));
    if (begin > expected) broken(fmt::format("the bytes from {} to {} before it belong to no tensor", expected, begin));
    expected = end;
    Entry entry{claim.name,        std::string(claim.type->name),
                claim.type->dtype, file_shape("safetensors", name, claim.shape),
                data_at + begin,   end - begin};
    std::int64_t bits = 0;
    if (__builtin_mul_overflow(entry.shape.count(), std::int64_t{claim.type->bits}, &bits) || bits % 8 != 0 ||
        static_cast<std::uint64_t>(bits) / 8 != entry.bytes) {
      broken(fmt::format("{}{} does not fill the {} bytes that its offsets give it", entry.type, to_string(entry.shape),
                         entry.bytes));
    }
    index.emplace(claim.name, entries.size());
    entries.push_back(std::move(entry));
  }
  if (expected != data_bytes) {
    fail<FormatError>("safetensors", "{}: the last {} bytes belong to no tensor", quote(name), data_bytes - expected);
  }
}

SafetensorsFile SafetensorsFile::open(const std::filesystem::path& path) {
  auto state = std::make_shared<State>();
  state->name = path.native();
  state->file.emplace(path);
  state->parse_header();
  return SafetensorsFile(std::move(state));
}

SafetensorsFile SafetensorsFile::parse(std::vector<std::byte> file, std::string name) {
  auto state = std::make_shared<State>();
  state->name = std::move(name);
  state->memory = std::move(file);
  state->parse_header();
  return SafetensorsFile(std::move(state));
}

std::span<const SafetensorsFile::Entry> SafetensorsFile::entries() const noexcept { return state_->entries; }
const SafetensorsMetadata& SafetensorsFile::metadata() const noexcept { return state_->metadata; }
const std::string& SafetensorsFile::name() const noexcept { return state_->name; }

const SafetensorsFile::Entry* SafetensorsFile::find(std::string_view name) const {
  const auto found = state_->index.find(name);
  return found == state_->index.end() ? nullptr : &state_->entries[found->second];
}

const SafetensorsFile::Entry& SafetensorsFile::at(std::string_view name) const {
  const Entry* entry = find(name);
  if (entry == nullptr) {
    fail<ValueError>("safetensors", "{} has no tensor {}; it has {} others", quote(state_->name), quote(name),
                     state_->entries.size());
  }
  return *entry;
}

void SafetensorsFile::read(const Entry& entry, std::span<std::byte> out) const {
  if (out.size() != entry.bytes) {
    fail<ShapeError>("safetensors", "room for {} bytes given; tensor {} has {}", out.size(), quote(entry.name),
                     entry.bytes);
  }
  state_->read(entry.offset, out);
}

std::vector<std::byte> SafetensorsFile::read(const Entry& entry) const {
  std::vector<std::byte> out(static_cast<std::size_t>(entry.bytes));
  read(entry, out);
  return out;
}

Tensor SafetensorsFile::tensor(std::string_view name, const Device& device) const {
  const Entry& entry = at(name);
  if (!entry.dtype) {
    fail<DTypeError>("safetensors", "{}: tensor {} is {}, a type the engine does not have", quote(state_->name),
                     quote(name), entry.type);
  }
  return tensor_from(device, entry.shape, *entry.dtype, [&](std::span<std::byte> out) {
    if (entry.dtype != DType::boolean) {
      read(entry, out);
      little_to_host(out, size_of(*entry.dtype));
      return;
    }
    // Checked before they become bools.
    const std::vector<std::byte> bytes = read(entry);
    check_bools("safetensors", state_->name, bytes);
    std::copy(bytes.begin(), bytes.end(), out.begin());
  });
}

namespace {

struct Planned {
  std::string_view name;
  Meta meta;
  std::size_t index = 0;  // in the caller's list
};

// Writes header and data; with_data(i, use) gives the bytes of the caller's i-th tensor.
WrittenFile write(
    const std::filesystem::path& path, std::vector<Planned> plan, const SafetensorsMetadata& metadata,
    const std::function<void(std::size_t, const std::function<void(std::span<const std::byte>)>&)>& with_data) {
  std::sort(plan.begin(), plan.end(), [](const Planned& a, const Planned& b) {
    const std::size_t x = size_of(a.meta.dtype);
    const std::size_t y = size_of(b.meta.dtype);
    return x != y ? x > y : a.name < b.name;
  });
  std::string header;
  try {
    header += '{';
    if (!metadata.empty()) {
      header += fmt::format("\"{}\":{}", kMetadataKey, json(metadata).dump());
    }
    std::map<std::string_view, int> names;
    std::uint64_t at = 0;
    for (const Planned& p : plan) {
      if (p.name == kMetadataKey || !names.emplace(p.name, 0).second) {
        fail<ValueError>("safetensors", "the name {} is {}", quote(p.name),
                         p.name == kMetadataKey ? "reserved" : "given twice");
      }
      const std::uint64_t end = at + file_bytes("safetensors", path.native(), p.meta.shape, size_of(p.meta.dtype));
      header +=
          fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}", header.size() > 1 ? "," : "",
                      json(p.name).dump(), type_of(p.meta.dtype), fmt::join(p.meta.shape.dims(), ","), at, end);
      at = end;
    }
    header += '}';
  } catch (const json::exception&) {
    fail<ValueError>("safetensors", "a name or metadata text is not UTF-8");
  }
  header.append((8 - header.size() % 8) % 8, ' ');
  if (header.size() > kMaxHeader) {
    fail<ValueError>("safetensors", "a header of {} bytes; at most {} are allowed", header.size(), kMaxHeader);
  }

  AtomicFile file(path);
  std::array<std::byte, 8> length{};
  store_little(length.data(), std::uint64_t{header.size()});
  file.write(length);
  file.write(header);
  for (const Planned& p : plan) {
    with_data(p.index, [&](std::span<const std::byte> bytes) {
      if (bytes.size() != static_cast<std::uint64_t>(p.meta.bytes())) {
        fail<ShapeError>("safetensors", "{} bytes given for tensor {}, {}{}", bytes.size(), quote(p.name),
                         name_of(p.meta.dtype), to_string(p.meta.shape));
      }
      if constexpr (std::endian::native == std::endian::big) {
        std::vector<std::byte> little(bytes.begin(), bytes.end());
        little_to_host(little, size_of(p.meta.dtype));
        file.write(little);
      } else {
        file.write(bytes);
      }
    });
  }
  return file.commit();
}

}  // namespace

WrittenFile write_safetensors(const std::filesystem::path& path, std::span<const SafetensorsItem> items,
                              const SafetensorsMetadata& metadata) {
  std::vector<Planned> plan;
  for (const SafetensorsItem& item : items) plan.push_back({item.name, {item.shape, item.dtype}, plan.size()});
  return write(path, std::move(plan), metadata, [&](std::size_t i, const auto& use) { use(items[i].bytes); });
}

WrittenFile write_safetensors(const std::filesystem::path& path, std::span<const NamedTensor> tensors,
                              const SafetensorsMetadata& metadata) {
  std::vector<Planned> plan;
  for (const NamedTensor& t : tensors) {
    if (!t.tensor.defined()) fail<DeviceError>("safetensors", "tensor {} is undefined", quote(t.name));
    plan.push_back({t.name, t.tensor.meta(), plan.size()});
  }
  return write(path, std::move(plan), metadata,
               [&](std::size_t i, const auto& use) { with_bytes(tensors[i].tensor, use); });
}

}  // namespace lamina
