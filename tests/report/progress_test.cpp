#include "lamina/tools/progress.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <vector>

#include "lamina/tools/table.hpp"

namespace lamina::tools {
namespace {

// A file in memory and a clock by hand.
struct Screen {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{std::tmpfile(), std::fclose};
  double now = 0;

  Progress::Options options(Progress::Style style, std::int64_t total) {
    return {.out = file.get(), .style = style, .total_steps = total, .width = 80, .clock = [this] { return now; }};
  }
  std::string text() {
    std::fflush(file.get());
    std::string out(static_cast<std::size_t>(std::ftell(file.get())), '\0');
    std::rewind(file.get());
    out.resize(std::fread(out.data(), 1, out.size(), file.get()));
    std::fseek(file.get(), 0, SEEK_END);
    return out;
  }
};

std::int64_t count(const std::string& text, char c) { return std::ranges::count(text, c); }

TEST(Progress, QuietWritesNothing) {
  Screen screen;
  {
    Progress p(screen.options(Progress::Style::quiet, 10));
    p.update({.step = 1});
    p.message("hello");
  }
  EXPECT_EQ(screen.text(), "");
}

TEST(Progress, BarRedrawsAtMostTenTimesASecondOnOneLine) {
  Screen screen;
  {
    Progress p(screen.options(Progress::Style::bar, 1000));
    for (int i = 1; i <= 1000; ++i) {
      screen.now = i * 0.001;
      p.update({.step = i, .examples = i * 32, .loss = 0.5, .note = "epoch 1/1"});
    }
  }
  const std::string text = screen.text();
  EXPECT_LE(count(text, '\r'), 13);
  EXPECT_GE(count(text, '\r'), 9);
  EXPECT_EQ(count(text, '\n'), 1);
  EXPECT_EQ(text.back(), '\n');
  const std::string last = text.substr(text.rfind('\r') + 1);
  EXPECT_NE(last.find("100%"), std::string::npos) << last;
  EXPECT_NE(last.find("1000/1000"), std::string::npos) << last;
  EXPECT_NE(last.find("epoch 1/1"), std::string::npos) << last;
  EXPECT_NE(last.find("loss 0.5"), std::string::npos) << last;
  EXPECT_NE(last.find("32.0k ex/s"), std::string::npos) << last;
}

TEST(Progress, NeverWiderThanTheTerminal) {
  for (const int width : {1, 5, 12, 30, 50, 79, 200}) {
    Screen screen;
    auto options = screen.options(Progress::Style::bar, 100);
    options.width = width;
    {
      Progress p(options);
      for (int i = 1; i <= 100; i += 7) {
        screen.now += 0.2;
        p.update({.step = i, .examples = i * 1000, .loss = 1234.5678, .note = "épsilon"});
      }
    }
    std::string text = screen.text();
    for (std::size_t at = 0; (at = text.find('\r', at)) != std::string::npos; ++at) {
      const std::size_t end = text.find("\x1b[K", at);
      EXPECT_LT(display_width(text.substr(at + 1, end - at - 1)), static_cast<std::size_t>(width));
    }
  }
}

TEST(Progress, PlainLinesEveryFewSecondsAndAtTheEnd) {
  Screen screen;
  {
    Progress p(screen.options(Progress::Style::lines, 200));
    for (int i = 1; i <= 200; ++i) {
      screen.now = i * 0.1;
      p.update({.step = i, .examples = i});
    }
  }
  const std::string text = screen.text();
  EXPECT_GE(count(text, '\n'), 4);
  EXPECT_LE(count(text, '\n'), 5);
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(text.find("step 200/200"), std::string::npos) << text;
}

TEST(Progress, TimeLeftFollowsTheSpeed) {
  Screen screen;
  Progress p(screen.options(Progress::Style::bar, 1000));
  EXPECT_TRUE(std::isnan(p.seconds_left()));
  for (int i = 1; i <= 100; ++i) {
    screen.now = i * 0.1;
    p.update({.step = i});
  }
  EXPECT_NEAR(p.seconds_left(), 90, 1);
}

TEST(Progress, AResumedRunCountsItsOwnStepsForItsSpeed) {
  Screen screen;
  auto options = screen.options(Progress::Style::bar, 1000);
  options.first_step = 900;
  Progress p(options);
  screen.now = 10;
  p.update({.step = 910, .examples = 10});
  EXPECT_NEAR(p.seconds_left(), 90, 1e-6);
}

TEST(Progress, AnExceptionLeavesACleanLine) {
  Screen screen;
  try {
    Progress p(screen.options(Progress::Style::bar, 10));
    screen.now = 1;
    p.update({.step = 1, .loss = 1});
    p.update({.step = 2, .loss = 2});  // too soon to be drawn
    throw std::runtime_error("no");
  } catch (const std::runtime_error&) {
  }
  const std::string text = screen.text();
  EXPECT_EQ(text.back(), '\n');
  EXPECT_NE(text.find(" 2/10"), std::string::npos);
}

TEST(Progress, MessagesStandAboveTheBar) {
  Screen screen;
  {
    Progress p(screen.options(Progress::Style::bar, 10));
    p.update({.step = 1});
    p.message("epoch 1: 90 %\x1b[2J\n");
  }
  const std::string text = screen.text();
  EXPECT_NE(text.find("\r\x1b[Kepoch 1: 90 % [2J \n\r"), std::string::npos) << text;
}

TEST(Progress, UnknownTotal) {
  Screen screen;
  {
    Progress p(screen.options(Progress::Style::bar, 0));
    screen.now = 1;
    p.update({.step = 5, .examples = 50});
  }
  EXPECT_NE(screen.text().find("step 5"), std::string::npos);
}

}  // namespace
}  // namespace lamina::tools
