#include "lamina/tools/run_record.hpp"

#include <cmath>

#include "lamina/core/error.hpp"
#include "lamina/core/trace.hpp"

namespace lamina::tools {

using Json = nlohmann::ordered_json;

std::string compiler_name() {
#if defined(__clang__)
  return fmt::format("Clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#elif defined(__GNUC__)
  return fmt::format("GCC {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#else
  return {};
#endif
}

namespace {

Json text(const std::string& value) { return value.empty() ? Json(nullptr) : Json(lamina::detail::valid_utf8(value)); }
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
template <class T>
Json number(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

// Options come from outside: what JSON cannot say becomes null or valid text.
Json clean(const Json& value) {
  if (value.is_number_float()) return number(value.get<double>());
  if (value.is_string()) return Json(lamina::detail::valid_utf8(value.get_ref<const std::string&>()));
  if (value.is_array()) {
    Json out = Json::array();
    for (const Json& item : value) out.push_back(clean(item));
    return out;
  }
  if (value.is_object()) {
    Json out = Json::object();
    for (const auto& [key, item] : value.items()) out[lamina::detail::valid_utf8(key)] = clean(item);
    return out;
  }
  return value;
}

Json to_json(const RunRecord::Cost& cost) {
  return {{"step_s", number(cost.step_s)}, {"peak_bytes", number(cost.peak_bytes)}};
}

// Reads the members of one object; names them by their path when they are wrong.
class Reader {
 public:
  Reader(const Json& object, std::string path) : object_(object), path_(std::move(path)) {
    if (!object.is_object())
      lamina::fail<FormatError>("run record", "{} is not an object", path_.empty() ? "it" : path_);
  }

  const Json* find(const char* key) const {
    const auto place = object_.find(key);
    return place == object_.end() || place->is_null() ? nullptr : &*place;
  }
  std::string path(std::string_view key) const {
    return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
  }
  [[noreturn]] void wrong(const char* key, std::string_view expected) const {
    lamina::fail<FormatError>("run record", "{} is not {}", path(key), expected);
  }

  void read(const char* key, std::string& out) const {
    const Json* value = find(key);
    if (value == nullptr) return;
    if (!value->is_string()) wrong(key, "a text");
    out = value->get<std::string>();
  }
  void read(const char* key, double& out) const {
    const Json* value = find(key);
    if (value == nullptr) return;
    if (!value->is_number()) wrong(key, "a number");
    out = value->get<double>();
  }
  template <class T>
  void read(const char* key, std::optional<T>& out) const {
    const Json* value = find(key);
    if (value == nullptr) return;
    if (!value->is_number_integer()) wrong(key, "an integer");
    out = value->get<T>();
  }
  template <class T>
    requires std::is_integral_v<T>
  void read(const char* key, T& out) const {
    std::optional<T> value;
    read(key, value);
    if (value) out = *value;
  }
  template <class F>
  void object(const char* key, F&& f) const {
    if (const Json* value = find(key)) f(Reader(*value, path(key)));
  }
  template <class F>
  void each(const char* key, F&& f) const {
    const Json* value = find(key);
    if (value == nullptr) return;
    if (!value->is_array()) wrong(key, "an array");
    for (std::size_t i = 0; i < value->size(); ++i) f((*value)[i], fmt::format("{}[{}]", path(key), i));
  }
  const Json& json() const { return object_; }

 private:
  const Json& object_;
  std::string path_;
};

void read(const Reader& from, RunRecord::Cost& cost) {
  from.read("step_s", cost.step_s);
  from.read("peak_bytes", cost.peak_bytes);
}

}  // namespace

Json RunRecord::to_json() const {
  Json json;
  json["schema"] = kSchema;
  json["command"] = text(command);
  json["build"] = {{"version", text(build.version)},
                   {"git", text(build.git)},
                   {"compiler", text(build.compiler)},
                   {"isa", text(build.isa)}};
  json["model"] = text(model);
  json["data"] = text(data);
  json["strategy"] = text(strategy);
  json["options"] = clean(options);
  json["seed"] = number(seed);
  json["workers"] = number(workers);
  json["devices"] = Json::array();
  for (const std::string& device : devices) json["devices"].push_back(text(device));
  json["steps"] = number(steps);
  json["examples"] = number(examples);
  json["wall_s"] = number(wall_s);
  json["examples_per_s"] = number(examples_per_s);
  Json& m = json["metrics"];
  m = {{"train_loss", number(metrics.train_loss)},
       {"test_loss", number(metrics.test_loss)},
       {"test_accuracy", number(metrics.test_accuracy)},
       {"parameters", number(metrics.parameters)}};
  for (const auto& [name, value] : metrics.more) m[lamina::detail::valid_utf8(name)] = number(value);
  Json& points = json["history"] = Json::array();
  for (const Point& p : history) {
    points.push_back({{"step", p.step},
                      {"examples", p.examples},
                      {"wall_s", number(p.wall_s)},
                      {"train_loss", number(p.train_loss)},
                      {"test_loss", number(p.test_loss)},
                      {"test_accuracy", number(p.test_accuracy)},
                      {"lr", number(p.lr)}});
  }
  json["flops_total"] = number(flops_total);
  json["flops_sequential"] = number(flops_sequential);
  json["bytes_sent"] = number(bytes_sent);
  Json& rows = json["per_worker"] = Json::array();
  for (const Worker& w : per_worker) {
    rows.push_back({{"rank", w.rank},
                    {"device", text(w.device)},
                    {"compute_s", number(w.compute_s)},
                    {"comm_s", number(w.comm_s)},
                    {"overlapped_s", number(w.overlapped_s)},
                    {"exposed_s", number(w.exposed_s)},
                    {"input_s", number(w.input_s)},
                    {"idle_s", number(w.idle_s)},
                    {"peak_bytes", number(w.peak_bytes)}});
  }
  json["predicted"] = tools::to_json(predicted);
  json["measured"] = tools::to_json(measured);
  return json;
}

std::string RunRecord::to_text() const { return to_json().dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

RunRecord RunRecord::from_json(const Json& json) {
  const Reader top(json, "");
  RunRecord out;
  out.build.compiler.clear();
  std::string schema;
  top.read("schema", schema);
  if (schema != kSchema) lamina::fail<FormatError>("run record", "schema is \"{}\", not \"{}\"", schema, kSchema);
  top.read("command", out.command);
  top.object("build", [&](const Reader& r) {
    r.read("version", out.build.version);
    r.read("git", out.build.git);
    r.read("compiler", out.build.compiler);
    r.read("isa", out.build.isa);
  });
  top.read("model", out.model);
  top.read("data", out.data);
  top.read("strategy", out.strategy);
  top.object("options", [&](const Reader& r) { out.options = r.json(); });
  top.read("seed", out.seed);
  top.read("workers", out.workers);
  top.each("devices", [&](const Json& value, const std::string& path) {
    if (!value.is_string() && !value.is_null()) lamina::fail<FormatError>("run record", "{} is not a text", path);
    out.devices.push_back(value.is_null() ? std::string() : value.get<std::string>());
  });
  top.read("steps", out.steps);
  top.read("examples", out.examples);
  top.read("wall_s", out.wall_s);
  top.read("examples_per_s", out.examples_per_s);
  top.object("metrics", [&](const Reader& r) {
    r.read("train_loss", out.metrics.train_loss);
    r.read("test_loss", out.metrics.test_loss);
    r.read("test_accuracy", out.metrics.test_accuracy);
    r.read("parameters", out.metrics.parameters);
    for (const auto& [key, value] : r.json().items()) {
      if (key == "train_loss" || key == "test_loss" || key == "test_accuracy" || key == "parameters") continue;
      double number = kAbsent;
      r.read(key.c_str(), number);
      out.metrics.more.emplace_back(key, number);
    }
  });
  top.each("history", [&](const Json& value, const std::string& path) {
    const Reader r(value, path);
    Point& p = out.history.emplace_back();
    r.read("step", p.step);
    r.read("examples", p.examples);
    r.read("wall_s", p.wall_s);
    r.read("train_loss", p.train_loss);
    r.read("test_loss", p.test_loss);
    r.read("test_accuracy", p.test_accuracy);
    r.read("lr", p.lr);
  });
  top.read("flops_total", out.flops_total);
  top.read("flops_sequential", out.flops_sequential);
  top.read("bytes_sent", out.bytes_sent);
  top.each("per_worker", [&](const Json& value, const std::string& path) {
    const Reader r(value, path);
    Worker& w = out.per_worker.emplace_back();
    r.read("rank", w.rank);
    r.read("device", w.device);
    r.read("compute_s", w.compute_s);
    r.read("comm_s", w.comm_s);
    r.read("overlapped_s", w.overlapped_s);
    r.read("exposed_s", w.exposed_s);
    r.read("input_s", w.input_s);
    r.read("idle_s", w.idle_s);
    r.read("peak_bytes", w.peak_bytes);
  });
  top.object("predicted", [&](const Reader& r) { read(r, out.predicted); });
  top.object("measured", [&](const Reader& r) { read(r, out.measured); });
  return out;
}

RunRecord RunRecord::from_text(std::string_view text) {
  // The depth is bounded first: a hostile file must not overflow the parser's or our stack.
  const auto depth = [](int d, Json::parse_event_t, Json&) {
    if (d > 32) lamina::fail<FormatError>("run record", "nested deeper than 32");
    return true;
  };
  Json json;
  try {
    json = Json::parse(text, depth);
  } catch (const Json::exception& e) {
    lamina::fail<FormatError>("run record", "{}", e.what());
  }
  return from_json(json);
}

}  // namespace lamina::tools
