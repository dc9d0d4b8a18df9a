#include "lamina/nn/checkpoint.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>

#include "lamina/core/io/file.hpp"
#include "lamina/core/io/json.hpp"
#include "lamina/core/options.hpp"

namespace lamina::nn {

namespace {

namespace fs = std::filesystem;

constexpr int kFormat = 1;

std::string stem(std::int64_t step) { return fmt::format("step-{:08}", step); }

// A step's tensors have one of two names, so that a step saved again never touches what its manifest names.
std::array<std::string, 2> tensor_names(std::int64_t step) {
  return {stem(step) + ".safetensors", stem(step) + ".again.safetensors"};
}

// Steps of all manifests in the folder, newest first.
std::vector<std::int64_t> steps_in(const fs::path& folder) {
  std::error_code error;
  std::vector<std::int64_t> steps;
  fs::directory_iterator it(folder, error);
  if (error) fail<IoError>("checkpoint", "{}: {}", folder.string(), error.message());
  for (; it != fs::directory_iterator(); it.increment(error)) {
    if (error) fail<IoError>("checkpoint", "{}: {}", folder.string(), error.message());
    const std::string name = it->path().filename().string();
    if (name.size() < 11 || name.substr(0, 5) != "step-" || name.substr(name.size() - 5) != ".json") continue;
    const std::string digits = name.substr(5, name.size() - 10);
    if (digits.find_first_not_of("0123456789") != std::string::npos || digits.size() > 18) continue;
    const std::int64_t step = std::stoll(digits);
    if (stem(step) + ".json" == name) steps.push_back(step);
  }
  std::sort(steps.rbegin(), steps.rend());
  return steps;
}

CheckpointStore::Loaded load(const fs::path& folder, std::int64_t step) {
  const nlohmann::json manifest = read_json(folder / (stem(step) + ".json"));
  auto integer = [&](const char* key) {
    if (!manifest.is_object() || !manifest.contains(key) || !manifest[key].is_number_integer()) {
      fail<FormatError>("checkpoint", "{}.json: no integer '{}'", stem(step), key);
    }
    return manifest[key];
  };
  if (const auto format = integer("format").get<std::int64_t>(); format != kFormat) {
    fail<FormatError>("checkpoint", "{}.json: format {}; this build reads {}", stem(step), format, kFormat);
  }
  if (integer("step").get<std::int64_t>() != step)
    fail<FormatError>("checkpoint", "{}.json: is of another step", stem(step));
  const auto names = tensor_names(step);
  const nlohmann::json name = manifest.value("file", nlohmann::json(names[0]));
  if (name != names[0] && name != names[1]) {
    fail<FormatError>("checkpoint", "{}.json: its file is {}, neither {} nor {}", stem(step), name.dump(), names[0],
                      names[1]);
  }
  const fs::path file = folder / name.get<std::string>();
  const ReadFile tensors(file);
  if (tensors.size() != integer("bytes").get<std::uint64_t>()) {
    fail<FormatError>("checkpoint", "{}: {} bytes, the manifest says {}", file.filename().string(), tensors.size(),
                      manifest["bytes"].get<std::uint64_t>());
  }
  const std::string hash = fmt::format("{:016x}", hash_file(file));
  if (!manifest.contains("hash") || manifest["hash"] != hash) {
    fail<FormatError>("checkpoint", "{}: its hash is not the manifest's", file.filename().string());
  }
  return {step, manifest.value("state", nlohmann::json::object()), SafetensorsFile::open(file)};
}

// The name of the tensor file of a checkpoint, empty unless that is there and whole.
std::string whole_tensors(const fs::path& folder, std::int64_t step) {
  std::error_code ignored;
  if (!fs::exists(folder / (stem(step) + ".json"), ignored)) return {};
  try {
    return fs::path(load(folder, step).tensors.name()).filename().string();
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

CheckpointStore::CheckpointStore(fs::path folder, int keep) : folder_(std::move(folder)), keep_(keep) {
  if (keep < 1) fail<ValueError>("checkpoint", "keep {} checkpoints; at least 1", keep);
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) fail<IoError>("checkpoint", "{}: {}", folder_.string(), error.message());
  lock_ = open_descriptor(folder_, O_RDONLY | O_DIRECTORY);
  // File systems without locks refuse with other errors; there nothing holds a second writer off.
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    fail<IoError>("checkpoint", "{}: another run writes its checkpoints there", folder_.string());
  }
}

std::optional<std::int64_t> CheckpointStore::newest_step() const {
  const std::vector<std::int64_t> steps = steps_in(folder_);
  return steps.empty() ? std::nullopt : std::optional(steps.front());
}

void CheckpointStore::save(std::int64_t step, std::span<const NamedTensor> tensors, const nlohmann::json& state) {
  const auto names = tensor_names(step);
  // The new tensors lie beside the old ones until the manifest, replaced in one moment, names them.
  const std::string& name = whole_tensors(folder_, step) == names[0] ? names[1] : names[0];
  const std::string& replaced = name == names[0] ? names[1] : names[0];
  std::error_code ignored;
  const WrittenFile written = write_safetensors(folder_ / name, tensors, {{"format", "lamina-checkpoint"}});
  const nlohmann::json content = {{"format", kFormat},
                                  {"step", step},
                                  {"file", name},
                                  {"bytes", written.bytes},
                                  {"hash", fmt::format("{:016x}", written.hash)},
                                  {"state", state}};
  try {
    write_file(folder_ / (stem(step) + ".json"), content.dump(1) + "\n");
  } catch (...) {
    // It may be in place all the same, when only syncing the folder failed.
    if (whole_tensors(folder_, step) != name) fs::remove(folder_ / name, ignored);
    throw;
  }
  fs::remove(folder_ / replaced, ignored);
  std::vector<std::int64_t> steps = steps_in(folder_);
  std::erase_if(steps, [&](std::int64_t other) { return other > step; });  // damaged ones that were passed over
  for (std::size_t i = static_cast<std::size_t>(keep_); i < steps.size(); ++i) {
    fs::remove(folder_ / (stem(steps[i]) + ".json"), ignored);  // first: without it the tensors are nobody's
    for (const std::string& tensor_name : tensor_names(steps[i])) fs::remove(folder_ / tensor_name, ignored);
  }
}

std::optional<CheckpointStore::Loaded> CheckpointStore::newest(const fs::path& folder,
                                                               std::vector<std::string>* skipped) {
  for (const std::int64_t step : steps_in(folder)) {
    try {
      return load(folder, step);
    } catch (const Error& e) {
      if (skipped != nullptr) skipped->push_back(e.what());
    }
  }
  return std::nullopt;
}

std::vector<NamedTensor> state_of(Module& model, Optimizer* optimizer) {
  std::vector<NamedTensor> all;
  const auto params = model.parameters();
  const auto buffers = model.buffers();
  std::vector<Param*> values = values_of(params);
  for (Param* b : values_of(buffers)) values.push_back(b);
  const Snapshot now = snapshot(values);
  for (std::size_t i = 0; i < params.size(); ++i) all.push_back({"model." + params[i].name, now.values[i]});
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    all.push_back({"buffer." + buffers[i].name, now.values[params.size() + i]});
  }
  if (optimizer != nullptr) {
    for (const Optimizer::NamedTensor& t : optimizer->state()) all.push_back({"optimizer." + t.name, *t.tensor});
  }
  return all;
}

void restore_state(const SafetensorsFile& tensors, Module& model, Optimizer* optimizer) {
  std::set<std::string> expected;
  for (const NamedTensor& t : state_of(model, optimizer)) {
    expected.insert(t.name);
    const SafetensorsFile::Entry* entry = tensors.find(t.name);
    if (entry == nullptr) {
      fail<FormatError>("checkpoint", "{}: no tensor '{}': a checkpoint of another model or optimizer", tensors.name(),
                        t.name);
    }
    if (!(entry->shape == t.tensor.shape()) || entry->dtype != t.tensor.dtype()) {
      fail<FormatError>("checkpoint", "{}: '{}' is {}{}, the model has {}{}: a checkpoint of another model or dtype",
                        tensors.name(), t.name, entry->type, to_string(entry->shape), name_of(t.tensor.dtype()),
                        to_string(t.tensor.shape()));
    }
  }
  for (const SafetensorsFile::Entry& entry : tensors.entries()) {
    const bool ours = entry.name.rfind("optimizer.", 0) != 0 || optimizer != nullptr;
    if (ours && !expected.contains(entry.name)) {
      fail<FormatError>("checkpoint", "{}: tensor '{}' is not the model's: a checkpoint of another model or optimizer",
                        tensors.name(), entry.name);
    }
  }
  // All are read before the first is put in place: a file that fails half-way leaves the model as it was.
  auto load = [&](const std::vector<Module::NamedParam>& named, const std::string& prefix) {
    std::vector<Tensor> values;
    values.reserve(named.size());
    for (const Module::NamedParam& n : named)
      values.push_back(tensors.tensor(prefix + n.name, n.param->value().device()));
    return values;
  };
  const auto params = model.parameters();
  const auto buffers = model.buffers();
  std::vector<Tensor> param_values = load(params, "model.");
  std::vector<Tensor> buffer_values = load(buffers, "buffer.");
  std::vector<Optimizer::NamedTensor> state;
  std::vector<Tensor> state_values;
  if (optimizer != nullptr) {
    state = optimizer->state();
    for (const Optimizer::NamedTensor& t : state) {
      state_values.push_back(tensors.tensor("optimizer." + t.name, t.tensor->device()));
    }
  }
  for (std::size_t i = 0; i < params.size(); ++i) params[i].param->set(std::move(param_values[i]));
  for (std::size_t i = 0; i < buffers.size(); ++i) buffers[i].param->set(std::move(buffer_values[i]));
  for (std::size_t i = 0; i < state.size(); ++i) *state[i].tensor = std::move(state_values[i]);
}

}  // namespace lamina::nn
