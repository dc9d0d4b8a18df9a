#include "lamina/tools/run_record.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lamina/core/error.hpp"

namespace lamina::tools {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> keys(const Json& object) {
  std::vector<std::string> out;
  for (const auto& [key, value] : object.items()) out.push_back(key);
  return out;
}

RunRecord full() {
  RunRecord r;
  r.command = "lamina train";
  r.build = {"0.1.0", "abc", "GCC", "avx2"};
  r.model = "mlp";
  r.data = "fashion-mnist";
  r.strategy = "gpipe";
  r.options = {{"batch", 128}, {"lr", 0.1}, {"clip", nullptr}};
  r.seed = 18446744073709551615u;
  r.workers = 2;
  r.devices = {"cpu:0", "cpu:1"};
  r.steps = 10;
  r.examples = 1280;
  r.wall_s = 1.5;
  r.examples_per_s = 853.3;
  r.metrics = {0.5, 0.6, 0.8, 1108, {{"perplexity", 3.5}}};
  r.history = {{1, 128, 0.1, 2.3, kAbsent, kAbsent, 0.1}, {2, 256, 0.2, 2.2, 2.1, 0.3, 0.1}};
  r.flops_total = 1000;
  r.flops_sequential = 500;
  r.bytes_sent = 0;
  r.per_worker = {{0, "cpu:0", 1.0, 0.3, 0.1, 0.2, 0.1, 0.2, 4096}, {1, "cpu:1"}};
  r.predicted = {0.1, 4000};
  r.measured = {0.11, 4096};
  return r;
}

TEST(RunRecord, HasEveryKeyOfTheSchemaEvenWhenEmpty) {
  for (const RunRecord& record : {RunRecord{}, full()}) {
    const Json json = record.to_json();
    EXPECT_EQ(keys(json), (std::vector<std::string>{
                              "schema",     "command",        "build",     "model",   "data",        "strategy",
                              "options",    "seed",           "workers",   "devices", "steps",       "examples",
                              "wall_s",     "examples_per_s", "metrics",   "history", "flops_total", "flops_sequential",
                              "bytes_sent", "per_worker",     "predicted", "measured"}));
    EXPECT_EQ(json["schema"], "lamina-run/1");
    EXPECT_EQ(keys(json["build"]), (std::vector<std::string>{"version", "git", "compiler", "isa"}));
    EXPECT_EQ(keys(json["predicted"]), (std::vector<std::string>{"step_s", "peak_bytes"}));
    EXPECT_EQ(keys(json["measured"]), (std::vector<std::string>{"step_s", "peak_bytes"}));
    for (const char* metric : {"train_loss", "test_loss", "test_accuracy", "parameters"})
      EXPECT_TRUE(json["metrics"].contains(metric));
    EXPECT_FALSE(json["metrics"]["parameters"].is_number_float());
    for (const Json& p : json["history"]) {
      EXPECT_EQ(keys(p), (std::vector<std::string>{"step", "examples", "wall_s", "train_loss", "test_loss",
                                                   "test_accuracy", "lr"}));
    }
    for (const Json& w : json["per_worker"]) {
      EXPECT_EQ(keys(w), (std::vector<std::string>{"rank", "device", "compute_s", "comm_s", "overlapped_s", "exposed_s",
                                                   "input_s", "idle_s", "peak_bytes"}));
    }
  }
}

TEST(RunRecord, WhatDoesNotApplyIsNull) {
  const Json json = RunRecord{}.to_json();
  for (const char* key : {"command", "model", "data", "strategy", "seed", "workers", "steps", "examples", "wall_s",
                          "examples_per_s", "flops_total", "flops_sequential", "bytes_sent"}) {
    EXPECT_TRUE(json[key].is_null()) << key;
  }
  EXPECT_TRUE(json["options"].is_object());
  EXPECT_TRUE(json["history"].is_array());
  EXPECT_TRUE(json["metrics"]["test_loss"].is_null());
  EXPECT_TRUE(json["predicted"]["step_s"].is_null());
  EXPECT_FALSE(json["build"]["compiler"].is_null());
}

TEST(RunRecord, NumbersThatAreNotFiniteBecomeNull) {
  RunRecord r = full();
  r.wall_s = std::numeric_limits<double>::infinity();
  r.metrics.train_loss = -std::numeric_limits<double>::infinity();
  r.metrics.more = {{"x", kAbsent}};
  r.history[0].train_loss = kAbsent;
  r.options["nested"] = {{"values", {1.0, kAbsent}}};
  const Json json = r.to_json();
  EXPECT_TRUE(json["wall_s"].is_null());
  EXPECT_TRUE(json["metrics"]["train_loss"].is_null());
  EXPECT_TRUE(json["metrics"]["x"].is_null());
  EXPECT_TRUE(json["history"][0]["train_loss"].is_null());
  EXPECT_TRUE(json["options"]["nested"]["values"][1].is_null());
  const std::string text = r.to_text();
  EXPECT_EQ(text.find("nan"), std::string::npos);
  EXPECT_EQ(text.find("inf"), std::string::npos);
  EXPECT_TRUE(Json::accept(text));
}

TEST(RunRecord, RoundTrips) {
  const RunRecord r = full();
  const RunRecord back = RunRecord::from_text(r.to_text());
  EXPECT_EQ(back.to_json(), r.to_json());
  EXPECT_EQ(back.seed, r.seed);
  EXPECT_TRUE(std::isnan(back.history[0].test_loss));
}

TEST(RunRecord, InvalidUtf8IsReplaced) {
  RunRecord r;
  r.command = "a\xff";
  r.options["k\xfe"] = "v\xfd";
  r.metrics.more = {{"m\xfc", 1}};
  EXPECT_TRUE(Json::accept(r.to_text()));
}

TEST(RunRecord, NamesTheKeyThatIsWrong) {
  const auto message = [](Json json) -> std::string {
    try {
      RunRecord::from_json(json);
    } catch (const FormatError& e) {
      return e.what();
    }
    return "no error";
  };
  Json json = full().to_json();
  json["schema"] = "other/9";
  EXPECT_EQ(message(json), "run record: schema is \"other/9\", not \"lamina-run/1\"");
  json = full().to_json();
  json["per_worker"][1]["rank"] = "one";
  EXPECT_EQ(message(json), "run record: per_worker[1].rank is not an integer");
  json = full().to_json();
  json["history"] = 3;
  EXPECT_EQ(message(json), "run record: history is not an array");
  EXPECT_EQ(message(Json::array()), "run record: it is not an object");
  EXPECT_THROW(RunRecord::from_text("{"), FormatError);
  EXPECT_THROW(RunRecord::from_text(std::string(100000, '[')), FormatError);
}

}  // namespace
}  // namespace lamina::tools
