// Heat conduction: a plate with cold edges cools until its hottest point is below a limit.
//
//   weft run -n 2 build/release/miniapps/heat_conduction --odf 4 --verify
//
// The plate is cut into strips of rows, which exchange their outer rows over channels. A reduction over all strips finds
// the hottest point while they compute: a strip looks at the result at the next check.
//
// The temperatures at the start are two sine waves, for which the result is known: each shrinks by the same factor in every
// step. heat_conduction.py is the same in Python and takes as many steps.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <numbers>
#include <optional>
#include <span>
#include <vector>

#include "weft/weft.h"

#include "command_line/program.h"
#include "options.h"

namespace heat_conduction {
namespace {

constexpr double kRate = 0.2;  // of the difference to the neighbours that flows in a step
constexpr double kTolerance = 1e-10;

// The waves at the start: half waves along rows and columns, and the amplitude.
struct Wave {
  int rows, columns;
  double amplitude;
};
constexpr Wave kWaves[] = {{1, 1, 1.0}, {3, 2, 0.5}};

// A plate of size x size points within its edges.
struct Problem {
  int size, num_strips, check_every;
  double until;

  int first_row(int strip) const {
    return static_cast<int>(static_cast<long long>(size) * strip / num_strips);
  }
};

double squared_sine(double x) { return std::sin(x) * std::sin(x); }

// The exact temperature of a point after `num_steps`. Rows and columns count from 0; -1 and size are edges.
double temperature(int size, int row, int column, int num_steps) {
  const double spacing = std::numbers::pi / (size + 1);
  double total = 0.0;
  for (const Wave& wave : kWaves) {
    const double shrink =
        1.0 -
        4.0 * kRate * (squared_sine(wave.rows * spacing / 2) + squared_sine(wave.columns * spacing / 2));
    total += wave.amplitude * std::pow(shrink, num_steps) * std::sin(wave.rows * spacing * (row + 1)) *
             std::sin(wave.columns * spacing * (column + 1));
  }
  return total;
}

// Rows of the plate, with a ghost row above and below, and the edges left and right.
struct Strip : weft::Chare<Strip> {
  explicit Strip(Problem problem)
      : problem_(problem),
        width_(static_cast<std::size_t>(problem.size) + 2),
        first_(problem.first_row(index())),
        num_rows_(static_cast<std::size_t>(problem.first_row(index() + 1) - first_)) {
    for (std::size_t i = 0; i < num_rows_ + 2; ++i) {
      for (std::size_t j = 0; j < width_; ++j) now_.push_back(exact(i, j, 0));
    }
    next_ = now_;
    if (index() > 0) above_.emplace(*this, proxy()[index() - 1]);
    if (index() + 1 < problem.num_strips) below_.emplace(*this, proxy()[index() + 1]);
  }

  // The steps until a check has found the plate cold enough.
  weft::Task<int> run() {
    std::optional<weft::Future<double>> hottest;
    for (int step = 0;; ++step) {
      if (step % problem_.check_every == 0) {
        if (hottest) {
          const double was = co_await *hottest;
          if (was < problem_.until) co_return step;
        }
        hottest = allreduce(own_hottest(), weft::Reducer::kMax);
      }
      co_await exchange();
      update();
    }
  }

  // Against the exact temperatures.
  double largest_error(int num_steps) {
    double error = 0.0;
    for (std::size_t i = 1; i <= num_rows_; ++i) {
      for (std::size_t j = 1; j + 1 < width_; ++j) {
        error = std::max(error, std::abs(now_[i * width_ + j] - exact(i, j, num_steps)));
      }
    }
    return error;
  }

 private:
  double exact(std::size_t i, std::size_t j, int num_steps) const {
    return temperature(problem_.size, first_ + static_cast<int>(i) - 1, static_cast<int>(j) - 1, num_steps);
  }

  std::span<double> row(std::size_t i) { return std::span(now_).subspan(i * width_, width_); }

  double own_hottest() const {
    double hottest = 0.0;
    for (std::size_t i = width_; i < (num_rows_ + 1) * width_; ++i)
      hottest = std::max(hottest, std::abs(now_[i]));
    return hottest;
  }

  // Sends the outer rows, and sets the ghost rows.
  weft::Task<> exchange() {
    std::vector<weft::Operation> operations;
    if (above_) {
      operations.push_back(above_->recv(row(0)));
      operations.push_back(above_->send(row(1)));
    }
    if (below_) {
      operations.push_back(below_->recv(row(num_rows_ + 1)));
      operations.push_back(below_->send(row(num_rows_)));
    }
    for (weft::Operation& operation : operations) co_await operation;
  }

  void update() {
    for (std::size_t i = 1; i <= num_rows_; ++i) {
      for (std::size_t at = i * width_ + 1; at + 1 < (i + 1) * width_; ++at) {
        const double around = now_[at - width_] + now_[at + width_] + now_[at - 1] + now_[at + 1];
        next_[at] = now_[at] + kRate * (around - 4.0 * now_[at]);
      }
    }
    now_.swap(next_);
  }

  Problem problem_;
  std::size_t width_;
  int first_;
  std::size_t num_rows_;
  std::vector<double> now_, next_;
  std::optional<weft::Channel> above_, below_;
};

// Whether the result is right, as far as that was asked for.
weft::Task<bool> solve(weft::Runtime& runtime, Options options) {
  const Problem problem{options.size, runtime.num_pes() * options.odf, options.check_every, options.until};
  if (problem.num_strips > problem.size)
    throw miniapps::UserError("there are more strips than rows: use a larger --size");
  std::printf("heat conduction in C++: %d x %d points in %d strips\n", problem.size, problem.size,
              problem.num_strips);
  auto plate = weft::Array<Strip>::create(runtime, problem.num_strips, problem);
  co_await plate.created();
  const auto start = std::chrono::steady_clock::now();
  const std::vector<int> steps = co_await plate.call<&Strip::run>();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("below %g after %d steps; time %.4f s\n", problem.until, steps[0], seconds);
  const char* verified = "null";
  if (options.verify) {
    const std::vector<double> errors = co_await plate.call<&Strip::largest_error>(steps[0]);
    const double error = *std::max_element(errors.begin(), errors.end());
    verified = error < kTolerance ? "true" : "false";
    std::printf("verify: the largest error is %.1e, %s\n", error,
                error < kTolerance ? "as it should be" : "TOO LARGE");
  }
  std::printf(R"({"metric": "time_s", "value": %.9f, "steps": %d, "verified": %s})"
              "\n",
              seconds, steps[0], verified);
  co_return verified[0] != 'f';
}

weft::Task<bool> run(weft::Runtime& runtime, int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  if (options.help) {
    std::fputs(kHelp, stdout);
    co_return true;
  }
  const bool is_right = co_await solve(runtime, options);
  co_return is_right;
}

}  // namespace
}  // namespace heat_conduction

int main(int argc, char** argv) {
  return weft::run(argc, argv, [=](weft::Runtime& runtime) {
    return miniapps::run(runtime, "heat_conduction", heat_conduction::run(runtime, argc, argv));
  });
}
