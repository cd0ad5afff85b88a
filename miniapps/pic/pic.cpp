// PIC: particles in a periodic grid of charges, in blocks that load balancing moves.
//
//   weft run -n 2 --lb greedy_refine build/release/miniapps/pic --odf 16 --lb-every 10 --verify
//
// problem.h has the problem, kernels.h the computations, particles.h a block's data, block.h the chare.
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "weft/weft.h"

#include "block.h"
#include "command_line/program.h"
#include "options.h"
#include "report.h"

namespace pic {
namespace {

using miniapps::say;

weft::Task<Result> solve(weft::Runtime& runtime, const Options& options) {
  const Setup setup{options.problem, options.lb_every, options.warmup, options.counts_particles};
  const std::int64_t last_step = options.warmup + options.steps;
  auto blocks = weft::Array<Block>::create(runtime, {static_cast<int>(options.problem.num_blocks())}, setup);
  weft::Future<> warm(runtime);
  blocks.send<&Block::run>(options.warmup, warm);
  co_await warm;
  co_await blocks.call<&Block::restart_account>();

  weft::Future<> done(runtime);
  const auto begin = std::chrono::steady_clock::now();
  blocks.send<&Block::run>(last_step, done);
  co_await done;
  Result result;
  result.overall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

  const std::vector<Account> accounts = co_await blocks.call<&Block::account>();
  for (const Account& account : accounts) result.compute_s += account.compute_s / runtime.num_pes();
  result.balancing_s = balancing_s(accounts);
  result.num_syncs = accounts.at(0).syncs.size();
  Found total;
  for (const Found& found : co_await blocks.call<&Block::examine>(last_step)) total += found;
  result.checksum = total.checksum;
  if (options.verify) result.verdict = judge(options.problem, total);
  co_return result;
}

weft::Task<bool> run(weft::Runtime& runtime, int argc, char** argv) {
  Options options = parse_options(argc, argv);
  if (options.help) {
    std::fputs(help_text().c_str(), stdout);
    co_return true;
  }
  cut(options.problem, runtime.num_pes() * options.odf, options.split);
  check(options.problem);
  say(describe(options, runtime.num_pes()));
  const Result result = co_await solve(runtime, options);
  say(report(options, result, runtime.num_pes()));
  co_return !result.verdict || result.verdict->correct;
}

}  // namespace
}  // namespace pic

int main(int argc, char** argv) {
  return weft::run(argc, argv, [=](weft::Runtime& runtime) {
    return miniapps::run(runtime, "pic", pic::run(runtime, argc, argv));
  });
}
