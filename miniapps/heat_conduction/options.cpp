#include "options.h"

#include <string_view>

#include "fmt/format.h"

#include "command_line/arguments.h"
#include "device_streams/device_queues.h"

namespace heat_conduction {

using miniapps::UserError;

Options parse_options(int argc, char** argv) {
  Options options;
  for (miniapps::Arguments arguments(argc, argv); !arguments.done();) {
    const std::string_view option = arguments.take();
    if (option == "--size") {
      options.size = arguments.take_number(option, 1);
    } else if (option == "--odf") {
      options.odf = arguments.take_number(option, 1);
    } else if (option == "--check-every") {
      options.check_every = arguments.take_number(option, 1);
    } else if (option == "--until") {
      options.until = arguments.take_real(option);
      if (options.until <= 0.0 || options.until >= 10.0)
        throw UserError("--until must be above 0 and below 10");
    } else if (option == "--model") {
      options.model = arguments.take_one_of(option, {"channel", "queued", "graph"});
    } else if (option == "--memory") {
      const std::string memory = arguments.take_one_of(option, {"host", "emulated", "cuda"});
      options.memory = weft::memory::kind_from_name(memory).value();
    } else if (option == "--checksum") {
      options.checksum = true;
    } else if (option == "--verify") {
      options.verify = true;
    } else if (option == "--help" || option == "-h") {
      options.help = true;
    } else {
      throw UserError(fmt::format("there is no option '{}'", option));
    }
  }
  if (miniapps::is_queued_model(options.model)) {
    miniapps::expect_device_queues(options.model, options.memory, options.odf);
  } else if (options.memory != weft::Kind::kHost) {
    throw UserError("--memory is for --model queued and graph: give one of them with it");
  }
  return options;
}

}  // namespace heat_conduction
