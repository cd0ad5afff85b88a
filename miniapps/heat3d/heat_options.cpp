#include "heat_options.h"

#include <string_view>

#include "fmt/format.h"

#include "arguments.h"

namespace heat3d {
namespace {

using miniapps::Arguments;
using miniapps::UserError;

// A window of the report holds two steps.
constexpr int kLeastSteps = 3;

}  // namespace

const char* name_of(Exchange exchange) { return exchange == Exchange::kPgas ? "pgas" : "channel"; }

Body Options::body() const {
  Body body;
  body.points = points;
  body.power_steps = all_steps() / 2;
  return body;
}

Options parse_options(int argc, char** argv) {
  Options options;
  for (Arguments arguments(argc, argv); !arguments.done();) {
    const std::string_view option = arguments.take();
    if (option == "--size") {
      options.points = jacobi3d::take_points(arguments);
    } else if (option == "--odf") {
      options.odf = arguments.take_number(option, 1);
    } else if (option == "--steps") {
      options.steps = arguments.take_number(option, kLeastSteps);
    } else if (option == "--warmup") {
      options.warmup = arguments.take_number(option, 0);
    } else if (option == "--exchange") {
      options.exchange =
          arguments.take_one_of(option, {"channel", "pgas"}) == "pgas" ? Exchange::kPgas : Exchange::kChannel;
    } else if (option == "--memory") {
      options.placement.memory = jacobi3d::take_memory(arguments);
    } else if (option == "--pin") {
      options.pin = true;
    } else if (option == "--verify") {
      options.verify = true;
    } else if (option == "--json") {
      options.json_file = arguments.take_value(option);
    } else if (option == "--help" || option == "-h") {
      options.help = true;
    } else {
      throw UserError(fmt::format("there is no option '{}'", option));
    }
  }
  return options;
}

std::string help_text() {
  return R"(usage: weft run -n PES heat3d [options]

Heat conduction in three dimensions, in explicit steps: the problem of the Kokkos tutorials. A box of points
of temperature 0 conducts heat between neighbouring points. Each outer side of a point radiates with the fourth
power of its temperature. Power enters at the side x = 0 during the first half of the steps. The box is cut into
PES x ODF blocks with the least area between them; a block exchanges its faces with up to six neighbours in
every step.

  --size N | X Y Z     points along each dimension (64)
  --odf N              overdecomposition factor: blocks per PE (1)
  --steps N            timed steps, at least 3 (1000)
  --warmup N           steps before them (100)
  --exchange NAME      pgas: one-sided, a block puts its faces into its neighbours' segments and then stores
                       the step's number there; channel: two-sided, channels with receives that are posted one
                       step ahead (pgas)
  --memory KIND        where the points are: host, emulated, or cuda, a GPU for each PE (host)
  --pin                keep each PE on a core of its own, for measurements on one host
  --verify             compare with a serial solution: every temperature must be equal to the last bit. Also the
                       body's energy must be what entered less what was radiated
  --json FILE          write the times of all windows, one JSON object
  --help               this text

What is timed. A PE takes the time when its last block ends a step. A window is two steps, because the buffers
of two steps are used in turn; it slides by one step: its time is that between the ends of steps i and i + 2.
Nothing but the exchange of faces synchronises the blocks. On a device, a step ends when it is queued; a block
cannot queue the next one before the neighbours' faces have arrived. Both exchanges have the same kernels and
the same buffers for packed faces.
)";
}

}  // namespace heat3d
