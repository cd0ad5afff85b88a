// Heat conduction: a plate with cold edges cools until its hottest point is below a limit.
//
//   weft run -n 2 build/release/miniapps/heat_conduction --odf 4 --verify
//
// The plate is cut into strips of rows, which exchange their outer rows over channels. A reduction over all strips finds
// the hottest point while they compute: a strip looks at the result at the next check. With --model queued and graph the
// strips are in device memory, and their streams exchange the rows (queued_strip.h).
//
// The temperatures at the start are two sine waves, for which the result is known: each shrinks by the same factor in every
// step. heat_conduction.py is the same in Python, and takes as many steps.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "weft/weft.h"

#include "checksum.h"
#include "command_line/program.h"
#include "device_streams/device_queues.h"
#include "kernels.h"
#include "options.h"
#include "plate.h"
#include "queued_strip.h"

namespace heat_conduction {
namespace {

// Rows of the plate, with a ghost row above and below, and the edges left and right.
struct Strip : weft::Chare<Strip> {
  explicit Strip(Problem problem)
      : problem_(problem),
        width_(problem.width()),
        num_rows_(problem.num_rows(index())),
        now_(temperatures(problem, index(), 0)),
        next_(now_) {
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
        hottest = allreduce(hottest_of(now_.data(), num_rows_, width_), weft::Reducer::kMax);
      }
      co_await exchange();
      update();
    }
  }

  // Against the exact temperatures.
  double error(int num_steps) { return largest_error(problem_, index(), num_steps, now_.data()); }
  std::uint64_t checksum() { return checksum_of(problem_, index(), now_.data()); }

 private:
  std::span<double> row(std::size_t i) { return std::span(now_).subspan(i * width_, width_); }

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
    update_rows(now_.data(), next_.data(), num_rows_, width_);
    now_.swap(next_);
  }

  Problem problem_;
  std::size_t width_;
  std::size_t num_rows_;
  std::vector<double> now_, next_;
  std::optional<weft::Channel> above_, below_;
};

// Of a plate of strips that are prepared. Whether the result is right, as far as that was asked for.
template <class Block, class Plate>
weft::Task<bool> cool(Options options, Plate plate) {
  const auto start = std::chrono::steady_clock::now();
  const std::vector<int> steps = co_await plate.template call<&Block::run>();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("below %g after %d steps; time %.4f s\n", options.until, steps[0], seconds);
  const char* verified = "null";
  if (options.verify) {
    const std::vector<double> errors = co_await plate.template call<&Block::error>(steps[0]);
    const double error = *std::max_element(errors.begin(), errors.end());
    verified = error < kTolerance ? "true" : "false";
    std::printf("verify: the largest error is %.1e, %s\n", error,
                error < kTolerance ? "as it should be" : "TOO LARGE");
  }
  if (options.checksum) {
    const std::vector<std::uint64_t> parts = co_await plate.template call<&Block::checksum>();
    const std::uint64_t sum = std::accumulate(parts.begin(), parts.end(), std::uint64_t{0});
    std::printf("checksum %016llx\n", static_cast<unsigned long long>(sum));
  }
  std::printf(R"({"metric": "time_s", "value": %.9f, "steps": %d, "verified": %s})"
              "\n",
              seconds, steps[0], verified);
  co_return verified[0] != 'f';
}

// Throws UserError, one sentence, if this program or this machine cannot do that.
void expect_usable(weft::Runtime& runtime, const Options& options) {
  if (options.memory == weft::Kind::kCuda && !cuda_is_built())
    throw miniapps::UserError("--memory cuda: this program was built without a CUDA compiler");
  try {
    weft::Stream stream(runtime, weft::device_of(runtime, options.memory));
  } catch (const weft::Error& error) {
    throw miniapps::UserError(error.what());
  }
}

weft::Task<bool> solve(weft::Runtime& runtime, Options options) {
  const Problem problem{options.size, runtime.num_pes() * options.odf, options.check_every, options.until};
  if (problem.num_strips > problem.size)
    throw miniapps::UserError("there are more strips than rows: use a larger --size");
  std::printf("heat conduction in C++: %d x %d points in %d strips\n", problem.size, problem.size,
              problem.num_strips);
  bool is_right = false;
  if (miniapps::is_queued_model(options.model)) {
    expect_usable(runtime, options);
    auto plate = weft::Array<QueuedStrip>::create(runtime, problem.num_strips, problem, options.memory,
                                                  options.model == "graph");
    co_await plate.call<&QueuedStrip::prepare>();
    is_right = co_await cool<QueuedStrip>(options, plate);
  } else {
    auto plate = weft::Array<Strip>::create(runtime, problem.num_strips, problem);
    co_await plate.created();
    is_right = co_await cool<Strip>(options, plate);
  }
  co_return is_right;
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
  miniapps::ask_for_device_queues(argc, argv);
  return weft::run(argc, argv, [=](weft::Runtime& runtime) {
    return miniapps::run(runtime, "heat_conduction", heat_conduction::run(runtime, argc, argv));
  });
}
