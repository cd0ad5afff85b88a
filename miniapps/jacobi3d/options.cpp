#include "options.h"

#include <string_view>

#include "fmt/format.h"

#include "arguments.h"
#include "device_streams/device_queues.h"

namespace jacobi3d {
namespace {

std::vector<std::string> take_models(Arguments& arguments) {
  const std::string model =
      arguments.take_one_of("--model", {"messaging", "channel", "queued", "graph", "both"});
  if (model == "both") return {"messaging", "channel"};
  return {model};
}

// What the options say together.
void check(const Options& options, bool staging_given) {
  if (staging_given && options.placement.memory == weft::Kind::kHost) {
    throw UserError("--staging is about device memory: give --memory emulated or cuda with it");
  }
  for (const std::string& model : options.models) {
    if (!miniapps::is_queued_model(model)) continue;
    if (options.placement.host_staging) {
      throw UserError(
          fmt::format("--model {} needs streams of a device: give it without --staging host", model));
    }
    miniapps::expect_device_queues(model, options.placement.memory, options.odf);
  }
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options options;
  bool staging_given = false;
  for (Arguments arguments(argc, argv); !arguments.done();) {
    std::string_view option = arguments.take();
    if (option == "--size") {
      options.points = take_points(arguments);
    } else if (option == "--odf") {
      options.odf = arguments.take_number(option, 1);
    } else if (option == "--iterations") {
      options.iterations = arguments.take_number(option, 1);
    } else if (option == "--warmup") {
      options.warmup = arguments.take_number(option, 0);
    } else if (option == "--model") {
      options.models = take_models(arguments);
    } else if (option == "--memory") {
      options.placement.memory = take_memory(arguments);
    } else if (option == "--staging") {
      options.placement.host_staging = arguments.take_one_of(option, {"host", "device"}) == "host";
      staging_given = true;
    } else if (option == "--verify") {
      options.verify = true;
    } else if (option == "--no-checksum") {
      options.checksum = false;
    } else if (option == "--json") {
      options.json_file = arguments.take_value(option);
    } else if (option == "--help" || option == "-h") {
      options.help = true;
    } else {
      throw UserError(fmt::format("there is no option '{}'", option));
    }
  }
  check(options, staging_given);
  return options;
}

std::string help_text() {
  return R"(usage: weft run -n PES jacobi3d [options]

Jacobi's iteration for Laplace's equation on a 3D grid of doubles with fixed boundary values. The grid is
cut into PES x ODF blocks with the least area between them; a block is a chare that exchanges its faces with
up to six neighbours in every iteration.

  --size N | X Y Z     points along each dimension, without the boundary (96)
  --odf N              overdecomposition factor: blocks per PE (4)
  --iterations N       timed iterations (100)
  --warmup N           iterations before them (10)
  --model NAME         messaging: faces are arguments of an entry method; channel: each pair of neighbours
                       has a channel; both of these (both). For device memory: queued: kernels, sends and
                       receives are queued on the block's stream, and the CPU waits for no face; graph: two
                       such iterations are captured once, and launched again and again
  --memory KIND        where the points are: host, emulated, or cuda, a GPU for each PE (host)
  --staging WHERE      device: faces go from device memory to device memory, not staged; host: staged by the
                       program, which copies them to host memory, sends that, and copies what arrives back,
                       as programs for an MPI without GPU support do (device)
  --verify             compare with a serial reference: every value must be equal to the last bit
  --no-checksum        do not read the result back from the blocks, which takes long for a large grid
  --json FILE          write the times as records, one JSON object a line
  --help               this text

What is timed. overall: from PE 0's broadcast that starts the iterations after the warm-up until the last
block has answered, divided by the iterations; the blocks start and end together and nothing else
synchronises them. The time of a PE goes to: compute, when points of any of its blocks are being updated (on
a device, by the device's clock); pack, when none are, but faces are being copied out of or into blocks;
communication, all else: calls to send, scheduling, transport, copies between device and host memory, and
waiting that no other block's work filled. The three are means over PEs and add up to overall. Kernels of
CUDA graphs are not timed: with --model graph and --memory cuda, communication is nearly all of overall.

--model queued and graph with --memory cuda: a PE has at most 24 blocks, because each has a stream that needs a
hardware queue of its own. The program sets CUDA_DEVICE_MAX_CONNECTIONS to 32 for that, unless it is set.
)";
}

}  // namespace jacobi3d
