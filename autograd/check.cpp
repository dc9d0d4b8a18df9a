#include "lamina/autograd/check.hpp"

#include <cmath>
#include <limits>

#include "lamina/core/rng.hpp"

namespace lamina {

namespace {

using Values = std::vector<std::vector<double>>;

struct Problem {
  std::function<double(const Values&)> loss;       // at other values
  std::function<std::vector<Tensor>()> gradients;  // at the given ones; undefined = absent
  Values at;
};

void note(GradientCheck& result, double analytic, double numeric, const std::string& where) {
  const double error = std::abs(analytic - numeric) / (1 + std::abs(numeric));
  if (error <= result.worst) return;  // false for NaN, which is then noted
  result.worst = std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
  result.where = fmt::format("{}: analytic {}, numeric {}", where, analytic, numeric);
}

GradientCheck compare(const Problem& problem, double step, int directions, std::uint64_t seed) {
  GradientCheck result;
  Values analytic;
  const std::vector<Tensor> gradients = problem.gradients();
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    analytic.push_back(gradients[i].defined() ? to_vector<double>(gradients[i])
                                              : std::vector<double>(problem.at[i].size()));
  }
  auto moved = [&](const Values& direction, double by) {
    Values values = problem.at;
    for (std::size_t i = 0; i < values.size(); ++i) {
      for (std::size_t j = 0; j < values[i].size(); ++j) values[i][j] += by * direction[i][j];
    }
    return problem.loss(values);
  };
  auto along = [&](const Values& direction, const std::string& where) {
    double expected = 0;
    for (std::size_t i = 0; i < direction.size(); ++i) {
      for (std::size_t j = 0; j < direction[i].size(); ++j) expected += analytic[i][j] * direction[i][j];
    }
    note(result, expected, (moved(direction, step) - moved(direction, -step)) / (2 * step), where);
  };
  Values direction;
  for (const auto& v : problem.at) direction.emplace_back(v.size());
  if (directions > 0) {
    for (int d = 0; d < directions; ++d) {
      const Rng rng(seed, static_cast<std::uint64_t>(d));
      for (std::size_t i = 0; i < direction.size(); ++i) {
        for (std::size_t j = 0; j < direction[i].size(); ++j) direction[i][j] = rng.normal(i, j);
      }
      along(direction, fmt::format("direction {}", d));
    }
    return result;
  }
  for (std::size_t i = 0; i < direction.size(); ++i) {
    for (std::size_t j = 0; j < direction[i].size(); ++j) {
      direction[i][j] = 1;
      along(direction, fmt::format("input {}, element {}", i, j));
      direction[i][j] = 0;
    }
  }
  return result;
}

}  // namespace

GradientCheck check_gradients(const std::function<Var(Tape&, std::span<const Var>)>& fn, std::vector<Tensor> inputs,
                              double step, int directions, std::uint64_t seed) {
  Problem problem;
  for (const Tensor& t : inputs) {
    if (t.dtype() != DType::f64) fail<DTypeError>("check_gradients", "inputs are f64; got {}", to_string(t));
    problem.at.push_back(to_vector<double>(t));
  }
  auto run = [&](const std::vector<Tensor>& at, auto&& use) {
    Tape tape;
    std::vector<Var> vars;
    vars.reserve(at.size());
    for (const Tensor& t : at) vars.push_back(tape.input(t));
    const Var loss = fn(tape, vars);
    use(tape, vars, loss);
  };
  problem.loss = [&](const Values& values) {
    std::vector<Tensor> at;
    for (std::size_t i = 0; i < values.size(); ++i)
      at.push_back(Tensor::from(inputs[i].device(), inputs[i].shape(), values[i]));
    double loss = 0;
    run(at, [&](Tape&, std::span<const Var>, const Var& l) { loss = l.value().item(); });
    return loss;
  };
  problem.gradients = [&] {
    std::vector<Tensor> gradients;
    run(inputs, [&](Tape& tape, std::span<const Var> vars, const Var& loss) {
      const Gradients g = tape.backward(loss);
      for (const Var& v : vars) gradients.push_back(g.of(v));
    });
    return gradients;
  };
  return compare(problem, step, directions, seed);
}

GradientCheck check_gradients(const std::function<Var(Tape&)>& fn, std::span<Param* const> params, double step,
                              int directions, std::uint64_t seed) {
  Problem problem;
  const Snapshot before = snapshot(params);
  for (const Tensor& t : before.values) {
    if (t.dtype() != DType::f64) fail<DTypeError>("check_gradients", "parameters are f64; got {}", to_string(t));
    problem.at.push_back(to_vector<double>(t));
  }
  problem.loss = [&](const Values& values) {
    for (std::size_t i = 0; i < params.size(); ++i) {
      params[i]->set(Tensor::from(before.values[i].device(), before.values[i].shape(), values[i]));
    }
    Tape tape;
    const double loss = fn(tape).value().item();
    for (std::size_t i = 0; i < params.size(); ++i) params[i]->set(before.values[i]);
    return loss;
  };
  problem.gradients = [&] {
    Tape tape;
    const Gradients g = tape.backward(fn(tape));
    std::vector<Tensor> gradients;
    for (const Param* p : params) gradients.push_back(g.of(*p));
    return gradients;
  };
  return compare(problem, step, directions, seed);
}

}  // namespace lamina
