// `lamina report`: one page of several runs, from the files that --json and --trace wrote.
#pragma once

#include <string>
#include <vector>

namespace lamina::tools {

struct ReportOptions {
  std::vector<std::string> runs;
  std::vector<std::string> traces;  ///< none, or one a run
  std::string out = "report.html";
};

/// Throws ValueError when the numbers of files differ, FormatError and IoError for the files.
int report(const ReportOptions& options);

}  // namespace lamina::tools
