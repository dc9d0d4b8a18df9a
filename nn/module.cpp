#include "lamina/nn/module.hpp"

namespace lamina::nn {

namespace {
std::string join(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}
}  // namespace

std::vector<Module::NamedParam> Module::parameters(const std::string& prefix) {
  std::vector<NamedParam> all;
  all.reserve(params_.size());
  for (const NamedParam& p : params_) all.push_back({join(prefix, p.name), p.param, p.decays});
  for (const Child& child : children_) {
    for (NamedParam& p : child.module->parameters(join(prefix, child.name))) all.push_back(std::move(p));
  }
  return all;
}

std::vector<Module::NamedParam> Module::buffers(const std::string& prefix) {
  std::vector<NamedParam> all;
  all.reserve(buffers_.size());
  for (const NamedParam& b : buffers_) all.push_back({join(prefix, b.name), b.param, false});
  for (const Child& child : children_) {
    for (NamedParam& b : child.module->buffers(join(prefix, child.name))) all.push_back(std::move(b));
  }
  return all;
}

void Module::register_param(std::string name, Param& param, bool decays) {
  params_.push_back({std::move(name), &param, decays});
}
void Module::register_buffer(std::string name, Param& buffer) { buffers_.push_back({std::move(name), &buffer, false}); }
void Module::register_module(std::string name, Module& module) { children_.push_back({std::move(name), &module}); }

void Sequential::add(std::unique_ptr<Module> block, std::string name) {
  if (name.empty()) name = std::to_string(blocks_.size());
  register_module(name, *block);
  names_.push_back(std::move(name));
  blocks_.push_back(std::move(block));
}

Var Sequential::forward(const Var& x) const {
  Var y = x;
  for (const auto& block : blocks_) y = block->forward(y);
  return y;
}

std::vector<Param*> values_of(const std::vector<Module::NamedParam>& named) {
  std::vector<Param*> params;
  params.reserve(named.size());
  for (const Module::NamedParam& n : named) params.push_back(n.param);
  return params;
}

std::int64_t parameter_count(Module& module) {
  std::int64_t count = 0;
  for (const Module::NamedParam& p : module.parameters()) count += p.param->meta().shape.count();
  return count;
}

}  // namespace lamina::nn
