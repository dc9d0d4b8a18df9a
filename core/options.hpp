// "name:key=value,key=value": how models, data sets, schedules and strategies are named on a command line.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <cstdint>

namespace lamina {

/// A parsed name with options. Reading an option marks it used; finish() throws for those nobody read.
class NamedOptions {
 public:
  /// `what` names the kind of thing in messages ("model"). Throws ValueError for malformed text.
  NamedOptions(std::string what, std::string_view text);

  const std::string& name() const noexcept { return name_; }
  /// The text of an option, or `fallback`.
  std::string text(const std::string& key, const std::string& fallback);
  /// Throws ValueError unless an integer in [lo, hi].
  std::int64_t integer(const std::string& key, std::int64_t fallback, std::int64_t lo, std::int64_t hi);
  /// Throws ValueError unless a finite number in [lo, hi].
  double number(const std::string& key, double fallback, double lo, double hi);
  /// "256x128", "1024x8" is left to the caller: integers separated by 'x'.
  std::vector<std::int64_t> integers(const std::string& key, std::vector<std::int64_t> fallback);
  /// Throws ValueError naming an option that was given but not read, and those that were.
  void finish() const;
  /// The options read so far with their fallbacks, "width=16,depth=2": for help texts.
  std::string defaults() const;

 private:
  std::string what_;
  std::string name_;
  std::map<std::string, std::string> given_;
  /// An option that was read, with the value it has when it is not given.
  struct Known {
    std::string key;
    std::string fallback;
  };
  void note(const std::string& key, std::string fallback);

  std::vector<Known> known_;
};

/// Throws ValueError unless the whole text is an integer (number) in [lo, hi]; `where` names it in the message.
std::int64_t parse_integer(std::string_view where, std::string_view text, std::int64_t lo, std::int64_t hi);
double parse_number(std::string_view where, std::string_view text, double lo, double hi);

}  // namespace lamina
