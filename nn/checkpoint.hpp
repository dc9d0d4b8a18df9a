// Checkpoints: everything a run needs to go on, as data only: safetensors files with a JSON manifest each.
//
//   DIR/step-00000120.safetensors   parameters "model.<path>", buffers "buffer.<path>",
//                                   optimiser "optimizer.<path>.<state>"
//   DIR/step-00000120.json          format version, step, the run's own state,
//                                   name, size and hash of the tensor file
//
// The manifest is written last: a checkpoint exists when its manifest does and names the tensor file's hash. Killed at
// any moment, the last or the one before is whole. A step that is saved again takes the name step-00000120.again for
// its tensors (and a third time the first name), so that until its manifest is replaced the old checkpoint is whole.
// Parameters are named by module path, never by stage, so that a run can go on under another strategy or worker count.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lamina/core/io/descriptor.hpp"
#include "lamina/core/io/safetensors.hpp"
#include "lamina/nn/optimizer.hpp"

namespace lamina::nn {

class CheckpointStore {
 public:
  struct Loaded {
    std::int64_t step = 0;
    nlohmann::json state;  ///< what save() was given
    SafetensorsFile tensors;
  };

  /// Makes the folder if it is missing, and holds it against a second writer while it lives. Throws IoError when it
  /// cannot be made or another store has it, ValueError for keep < 1.
  CheckpointStore(std::filesystem::path folder, int keep);

  /// Of the newest manifest in the folder, whole or not.
  std::optional<std::int64_t> newest_step() const;

  /// Writes a checkpoint, in place of one of the same step, then removes all but the newest `keep` up to this step.
  /// Throws IoError; earlier checkpoints, and the old one of this step, are untouched then and no partial file stays.
  void save(std::int64_t step, std::span<const NamedTensor> tensors, const nlohmann::json& state);

  /// The newest complete checkpoint in a folder; incomplete and damaged ones are passed over and named in `skipped`.
  /// Nothing when there is none. Throws IoError when the folder cannot be read, FormatError for one written by a newer
  /// format.
  static std::optional<Loaded> newest(const std::filesystem::path& folder, std::vector<std::string>* skipped = nullptr);

 private:
  std::filesystem::path folder_;
  int keep_;
  Descriptor lock_;
};

/// The tensors of a model and its optimiser (may be null) under their checkpoint names.
std::vector<NamedTensor> state_of(Module& model, Optimizer* optimizer);

/// Puts a checkpoint's tensors into a model and its optimiser. Everything is checked first: throws FormatError naming a
/// tensor that is missing, left over, or of another shape or dtype ("a checkpoint of another model"), and then changes
/// nothing.
void restore_state(const SafetensorsFile& tensors, Module& model, Optimizer* optimizer);

}  // namespace lamina::nn
