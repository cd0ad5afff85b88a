#include "options.h"

#include <string_view>

#include "fmt/format.h"

#include "command_line/arguments.h"

namespace pic {
namespace {

using miniapps::Arguments;

Distribution distribution_named(std::string_view name) {
  if (name == "geometric") return Distribution::kGeometric;
  if (name == "sinusoidal") return Distribution::kSinusoidal;
  if (name == "linear") return Distribution::kLinear;
  if (name == "patch") return Distribution::kPatch;
  return Distribution::kUniform;
}

Area take_patch(Arguments& arguments, std::string_view option) {
  Area patch;
  patch.first_column = arguments.take_large_number(option, 0);
  patch.end_column = arguments.take_large_number(option, 0) + 1;
  patch.first_row = arguments.take_large_number(option, 0);
  patch.end_row = arguments.take_large_number(option, 0) + 1;
  return patch;
}

// Whether the option is one of the problem.
bool take_problem(Problem& problem, std::string_view option, Arguments& arguments) {
  if (option == "--size") {
    problem.size = arguments.take_large_number(option, 2);
  } else if (option == "--particles") {
    problem.particles = arguments.take_large_number(option, 1);
  } else if (option == "--k") {
    problem.k = arguments.take_large_number(option, 0);
  } else if (option == "--m") {
    problem.m = arguments.take_large_number(option, -kMaxMove);
  } else if (option == "--distribution") {
    problem.distribution = distribution_named(
        arguments.take_one_of(option, {"geometric", "sinusoidal", "linear", "patch", "uniform"}));
  } else if (option == "--ratio") {
    problem.ratio = arguments.take_real(option);
  } else if (option == "--linear") {
    problem.alpha = arguments.take_real(option);
    problem.beta = arguments.take_real(option);
  } else if (option == "--patch") {
    problem.patch = take_patch(arguments, option);
  } else if (option == "--seed") {
    problem.seed = static_cast<std::uint64_t>(arguments.take_large_number(option, 0));
  } else {
    return false;
  }
  return true;
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options options;
  for (Arguments arguments(argc, argv); !arguments.done();) {
    const std::string_view option = arguments.take();
    if (take_problem(options.problem, option, arguments)) continue;
    if (option == "--steps") {
      options.steps = arguments.take_large_number(option, 0);
    } else if (option == "--warmup") {
      options.warmup = arguments.take_large_number(option, 1);
    } else if (option == "--odf") {
      options.odf = arguments.take_large_number(option, 1);
    } else if (option == "--lb-every") {
      options.lb_every = arguments.take_large_number(option, 0);
    } else if (option == "--load") {
      options.counts_particles = arguments.take_one_of(option, {"time", "particles"}) == "particles";
    } else if (option == "--split") {
      options.split = arguments.take_one_of(option, {"x", "y", "2d"});
    } else if (option == "--verify") {
      options.verify = true;
    } else if (option == "--help" || option == "-h") {
      options.help = true;
    } else {
      throw UserError(fmt::format("there is no option '{}'", option));
    }
  }
  Problem& problem = options.problem;
  if (problem.patch == Area{}) {
    problem.patch = {0, problem.size / 2, 0, problem.size / 2};
  }
  return options;
}

std::string help_text() {
  return R"(usage: weft run -n PES [--lb NAME] pic [options]

The Parallel Research Kernel PIC: charged particles move through a periodic grid of fixed charges. The distribution of the
particles makes the work of the blocks unequal, and moves with the particles.

  --size L               cells along each dimension, even (2000)
  --particles N          (2000000)
  --steps N              timed steps (100)
  --warmup N             steps before them (1)
  --k K                  particles move 2 K + 1 columns in a step (0)
  --m M                  particles move M rows in a step (1)
  --distribution NAME    over the columns: geometric, sinusoidal, linear, patch or uniform (geometric)
  --ratio R              geometric: of a column to the one before (0.997)
  --linear ALPHA BETA    linear: BETA - ALPHA x, with x from 0 to 1 over the columns (1 1)
  --patch LEFT RIGHT BOTTOM TOP
                         patch: the columns and rows of its edges (the lower left quarter of the grid)
  --seed N               of the rows in which particles start (1)
  --split x|y|2d         blocks lie along x, across the skew of the distributions; along y; or in both (x)
  --odf N                overdecomposition factor: blocks per PE (1)
  --lb-every N           a sync point before the first timed step, and every N steps before and after it; 0: none (0)
  --load time|particles  what the strategy takes for the load of a block: its measured time, or the number of its
                         particles (time)
  --verify               check the place of every particle, their number and their ids
  --help                 this text

What is timed: --steps steps, after --warmup steps, from the start on PE 0 until all blocks have ended. compute is the
time of the kernels on all PEs, divided by the number of PEs: with a perfect balance and no other costs the run would take
as long. balancing is the time from the last block that reaches a sync point until the last PE goes on, summed over all
sync points; it needs all PEs on one host.

The last line is a JSON object with the time as "value" in seconds, as those of the measuring programs.
)";
}

}  // namespace pic
