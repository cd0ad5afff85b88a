// Heat conduction in 3D: one problem with a one-sided and a two-sided exchange of faces, and the times of two steps each.
//
//   weft run -n 2 build/release/miniapps/heat3d --exchange pgas --verify
//
// body.h has the arithmetic, heat_kernels.h the computations in each kind of memory, one_sided_block.h and two_sided_block.h
// the chares. The cut of the box, the fields and the buffers of faces are those of Jacobi3D.
#include <chrono>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "weft/weft.h"

#include "command_line/program.h"
#include "gather.h"
#include "heat_options.h"
#include "heat_report.h"
#include "one_sided_block.h"
#include "solution.h"
#include "two_sided_block.h"

namespace heat3d {
namespace {

using jacobi3d::Device;
using jacobi3d::Problem;
using miniapps::say;

bool verify(const Options& options, std::vector<double> temperatures) {
  const Solution solution = solve_serially(options.body(), options.all_steps());
  const jacobi3d::Comparison comparison =
      jacobi3d::compare(options.points, temperatures, solution.temperatures);
  const EnergyBalance balance{energy_of(temperatures), solution.expected_energy()};
  say("verify: " + comparison.describe());
  say("verify: " + balance.describe());
  return comparison.equal() && balance.is_right();
}

// Of the steps since the last call, on each PE.
template <class Block>
weft::Task<std::vector<std::vector<double>>> take_windows(weft::Array<Block> blocks, int num_pes) {
  const std::vector<std::vector<double>> ends_s = co_await blocks.template call<&Block::take_step_ends>();
  std::vector<std::vector<std::vector<double>>> by_pe(static_cast<std::size_t>(num_pes));
  for (std::size_t i = 0; i < ends_s.size(); ++i) {
    const int pe = jacobi3d::home_pe(blocks.shape().index(i), blocks.shape(), num_pes);
    by_pe[static_cast<std::size_t>(pe)].push_back(ends_s[i]);
  }
  std::vector<std::vector<double>> windows_s;
  for (const auto& blocks_s : by_pe) windows_s.push_back(two_step_times(last_ends(blocks_s)));
  co_return windows_s;
}

template <class Block>
weft::Task<> connect(weft::Array<Block> blocks) {
  if constexpr (requires { &Block::connect; }) {
    std::vector<ReceiveBuffers> receive_buffers = co_await blocks.template call<&Block::receive_buffers>();
    co_await blocks.template call<&Block::connect>(receive_buffers);
  }
  co_return;
}

template <class Block>
weft::Task<bool> solve(weft::Runtime& runtime, const Options& options, const Problem& problem) {
  auto devices = weft::Group<Device>::create(runtime, options.placement);
  co_await devices.call<&Device::take_times>();  // blocks find them there
  const weft::Shape shape{problem.blocks[0], problem.blocks[1], problem.blocks[2]};
  Setup setup{problem, options.body(), devices, options.pin};
  auto blocks = weft::Array<Block>::create(runtime, shape.with_map<&jacobi3d::home_pe>(), setup);
  co_await connect(blocks);
  co_await blocks.template call<&Block::run>(options.warmup);
  co_await devices.call<&Device::take_times>();
  co_await take_windows(blocks, runtime.num_pes());
  const auto start = std::chrono::steady_clock::now();
  co_await blocks.template call<&Block::run>(options.steps);
  const double elapsed_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  Timing timing;
  timing.step_s = elapsed_s / options.steps;
  const double num_shares = static_cast<double>(options.steps) * runtime.num_pes();
  const std::vector<jacobi3d::Times> times = co_await devices.call<&Device::take_times>();
  for (const jacobi3d::Times& pe : times) {
    timing.kernels.compute_s += pe.compute_s / num_shares;
    timing.kernels.pack_s += pe.pack_s / num_shares;
  }
  timing.windows_s = co_await take_windows(blocks, runtime.num_pes());
  say(table(options, timing));
  if (!options.json_file.empty()) write_json(options, runtime.num_pes(), timing);
  bool is_right = true;
  if (options.verify) {
    std::vector<double> temperatures = co_await jacobi3d::gather<Block>(blocks, problem);
    is_right = verify(options, std::move(temperatures));
  }
  co_return is_right;
}

weft::Task<bool> solve(weft::Runtime& runtime, const Options& options) {
  jacobi3d::expect_usable(runtime, options.placement);
  const Problem problem{options.points, jacobi3d::divide(options.points, runtime.num_pes() * options.odf)};
  say(describe(options, problem, runtime.num_pes()));
  if (options.exchange == Exchange::kPgas) {
    const bool is_right = co_await solve<OneSidedBlock>(runtime, options, problem);
    co_return is_right;
  }
  const bool is_right = co_await solve<TwoSidedBlock>(runtime, options, problem);
  co_return is_right;
}

weft::Task<bool> run(weft::Runtime& runtime, int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  if (options.help) {
    std::fputs(help_text().c_str(), stdout);
    co_return true;
  }
  const bool is_right = co_await solve(runtime, options);
  co_return is_right;
}

}  // namespace
}  // namespace heat3d

int main(int argc, char** argv) {
  return weft::run(argc, argv, [=](weft::Runtime& runtime) {
    return miniapps::run(runtime, "heat3d", heat3d::run(runtime, argc, argv));
  });
}
