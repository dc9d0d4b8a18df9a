// Module: a part of a model: a forward function, named parameters and named buffers. Models are Sequentials of blocks
// with this one interface; pipelines and local training cut between blocks.
//
// Thread-safety: forward() is const and may run on several threads at once, each on its own tape; buffers (batch norm's
// running statistics) are written under their lock.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lamina/autograd/tape.hpp"

namespace lamina::nn {

/// What constructors need: the device of the parameters, and the seed and position that key each layer's streams.
struct Builder {
  Device device;
  std::uint64_t seed = 0;
  DType dtype = DType::f32;
  std::uint64_t layers = 0;  ///< layers made so far

  /// The next layer's number: keys its initial values and its dropout.
  std::uint64_t next_layer() { return layers++; }
};

class Module {
 public:
  struct NamedParam {
    std::string name;  ///< path, "3.conv1.weight"
    Param* param;
    bool decays;  ///< weight decay applies (weights do; biases and norms' gains do not)
  };

  Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  virtual ~Module() = default;

  virtual Var forward(const Var& x) const = 0;
  Var operator()(const Var& x) const { return forward(x); }

  /// Own and children's parameters, in the order they were registered.
  std::vector<NamedParam> parameters(const std::string& prefix = "");
  /// State that is saved but not trained.
  std::vector<NamedParam> buffers(const std::string& prefix = "");

 protected:
  void register_param(std::string name, Param& param, bool decays = true);
  void register_buffer(std::string name, Param& buffer);
  void register_module(std::string name, Module& module);

 private:
  struct Child {
    std::string name;
    Module* module;
  };
  std::vector<NamedParam> params_;
  std::vector<NamedParam> buffers_;
  std::vector<Child> children_;
};

/// Blocks, one after the other.
class Sequential : public Module {
 public:
  Sequential() = default;

  /// Names are by position ("0", "1", ...) unless given.
  void add(std::unique_ptr<Module> block, std::string name = "");
  template <class M, class... Args>
  void emplace(Args&&... args) {
    add(std::make_unique<M>(std::forward<Args>(args)...));
  }
  Var forward(const Var& x) const override;

  std::size_t size() const noexcept { return blocks_.size(); }
  Module& block(std::size_t i) const { return *blocks_[i]; }
  const std::string& name(std::size_t i) const { return names_[i]; }

 private:
  std::vector<std::unique_ptr<Module>> blocks_;
  std::vector<std::string> names_;
};

/// The values and versions of all parameters and buffers of a module, as one.
std::vector<Param*> values_of(const std::vector<Module::NamedParam>& named);
/// Elements of all parameters.
std::int64_t parameter_count(Module& module);

}  // namespace lamina::nn
