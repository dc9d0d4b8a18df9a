// What the page calls each run and marks it with: in all sections the same. Pure functions; thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lamina/tools/report/page.hpp"

namespace lamina::tools {

using Runs = std::span<const RunReport>;
using Names = std::vector<std::string>;

/// The parts that are not empty.
std::string joined(const Names& parts, std::string_view separator = " · ");

/// What describes a run in a few words, each part apart.
Names parts_of(const RunRecord& r);

/// A name for each run: what tells it from the others.
Names names_of(Runs runs);

/// What all runs have in common.
std::string common_parts(Runs runs);

int color_of(std::size_t run);
/// HTML: the run's colour.
std::string chip(std::size_t run);
/// HTML: the heading of a card about one run; one alone needs no name. Its colour is left out of a card in which
/// colours mean kinds of work.
enum class Colors { runs, work };
std::string run_heading(Runs runs, const Names& names, std::size_t run, std::string_view what, Colors colors);

}  // namespace lamina::tools
