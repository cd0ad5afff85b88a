// Jacobi3D: a 7-point stencil over a chare array, its faces exchanged by entry methods, over channels, or by streams.
//
//   weft run -n 2 build/release/miniapps/jacobi3d --odf 4 --verify
//
// decomposition.h cuts the grid, field.h has the points of a block and kernels.h the computations on them
// in each kind of memory, messaging_block.h, channel_block.h and queued_block.h are the chares.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "channel_block.h"
#include "command_line/program.h"
#include "device_streams/device_queues.h"
#include "gather.h"
#include "messaging_block.h"
#include "options.h"
#include "queued_block.h"
#include "report.h"
#include "verification.h"

namespace jacobi3d {
namespace {

using miniapps::say;

Setup make_setup(weft::Runtime& runtime, const Problem& problem, weft::Group<Device> devices,
                 const std::string& model, int num_iterations) {
  auto progress = weft::Singleton<ProgressBar>::create(runtime, 0, model, num_iterations);
  return {problem, devices, progress.element(), progress_is_visible() ? std::max(1, num_iterations / 100) : 0,
          model == "graph"};
}

template <class Block>
weft::Task<Result> solve(weft::Runtime& runtime, const Options& options, const Problem& problem,
                         weft::Group<Device> devices, const std::string& model,
                         const std::vector<double>& expected) {
  Setup setup = make_setup(runtime, problem, devices, model, options.warmup + options.iterations);
  weft::Shape shape{problem.blocks[0], problem.blocks[1], problem.blocks[2]};
  auto blocks = weft::Array<Block>::create(runtime, shape.with_map<&home_pe>(), setup);
  co_await blocks.template call<&Block::run>(0);  // what has to be done before any stream waits
  co_await blocks.template call<&Block::run>(options.warmup);
  co_await devices.call<&Device::take_times>();
  auto start = std::chrono::steady_clock::now();
  co_await blocks.template call<&Block::run>(options.iterations);
  double elapsed_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::vector<Times> times = co_await devices.call<&Device::take_times>();
  if (setup.report_every != 0) co_await setup.progress.template call<&ProgressBar::clear>();

  Result result = make_result(model, elapsed_s, times, options.iterations);
  if (options.checksum) {
    std::vector<std::uint64_t> checksums = co_await blocks.template call<&Block::checksum>();
    result.checksum = std::accumulate(checksums.begin(), checksums.end(), std::uint64_t{0});
  }
  if (options.verify) {
    Comparison comparison = compare(problem.points, co_await gather<Block>(blocks, problem), expected);
    result.verdict = comparison.describe();
    result.correct = comparison.equal();
  }
  co_return result;
}

// Whether all results are right, as far as that was asked for.
weft::Task<bool> solve_all(weft::Runtime& runtime, const Options& options) {
  expect_usable(runtime, options.placement);
  Problem problem{options.points, divide(options.points, runtime.num_pes() * options.odf)};
  say(describe(options, problem, runtime.num_pes()));
  std::vector<double> expected;
  if (options.verify) {
    say("verify: computing the serial reference");
    expected = solve_serially(options.points, options.warmup + options.iterations);
  }
  auto devices = weft::Group<Device>::create(runtime, options.placement);
  co_await devices.call<&Device::take_times>();  // blocks find them there
  std::vector<Result> results;
  for (const std::string& model : options.models) {
    if (model == "messaging") {
      results.push_back(co_await solve<MessagingBlock>(runtime, options, problem, devices, model, expected));
    } else if (miniapps::is_queued_model(model)) {
      results.push_back(co_await solve<QueuedBlock>(runtime, options, problem, devices, model, expected));
    } else {
      results.push_back(co_await solve<ChannelBlock>(runtime, options, problem, devices, model, expected));
    }
  }
  say(table(results));
  if (!options.json_file.empty()) write_records(options, runtime.num_pes(), results);
  co_return std::all_of(results.begin(), results.end(), [](const Result& result) { return result.correct; });
}

weft::Task<bool> run(weft::Runtime& runtime, int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  if (options.help) {
    std::fputs(help_text().c_str(), stdout);
    co_return true;
  }
  const bool is_right = co_await solve_all(runtime, options);
  co_return is_right;
}

}  // namespace
}  // namespace jacobi3d

int main(int argc, char** argv) {
  miniapps::ask_for_device_queues(argc, argv);
  return weft::run(argc, argv, [=](weft::Runtime& runtime) {
    return miniapps::run(runtime, "jacobi3d", jacobi3d::run(runtime, argc, argv));
  });
}
