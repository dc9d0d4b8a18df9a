#include "lamina/tools/help.hpp"

#include <fmt/format.h>

#include "lamina/models/data/open.hpp"
#include "lamina/models/registry.hpp"
#include "lamina/nn/schedule.hpp"

namespace lamina::tools {

std::string named_options_help() {
  std::string text = "Names and their options, with defaults; options are given as NAME:key=value,key=value\n";
  text += "\n--model\n";
  for (const models::ModelHelp& model : models::model_help()) {
    text += fmt::format("  {}\n      {}\n      {}\n", model.names, model.defaults, model.about);
  }
  text += fmt::format("\n--data\n  {}\n", known_datasets());
  text += "\n--lr-schedule\n";
  for (const std::string& schedule : nn::lr_schedules()) text += fmt::format("  {}\n", schedule);
  return text + "      warmup: steps, or below 1 a share of the run; floor: share of --lr at the end\n";
}

}  // namespace lamina::tools
