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
#include "options.h"
#include "report.h"

namespace pic {
namespace {

void say(const std::string& text) {
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

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

// On PE 0 alone, so that a mistake is reported once.
weft::Task<> start(weft::Runtime& runtime, int argc, char** argv) {
  int code = 0;
  try {
    Options options = parse_options(argc, argv);
    if (options.help) {
      std::fputs(help_text().c_str(), stdout);
    } else {
      cut(options.problem, runtime.num_pes() * options.odf, options.split);
      check(options.problem);
      say(describe(options, runtime.num_pes()));
      const Result result = co_await solve(runtime, options);
      say(report(options, result, runtime.num_pes()));
      if (result.verdict && !result.verdict->correct) code = 1;
    }
  } catch (const UserError& error) {
    std::fprintf(stderr, "pic: %s (see pic --help)\n", error.what());
    code = 2;
  }
  runtime.exit(code);
}

}  // namespace
}  // namespace pic

int main(int argc, char** argv) {
  return weft::run(argc, argv, [=](weft::Runtime& runtime) { return pic::start(runtime, argc, argv); });
}
