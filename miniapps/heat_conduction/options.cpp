#include "options.h"

#include <string_view>

#include "fmt/format.h"

#include "command_line/arguments.h"

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
    } else if (option == "--verify") {
      options.verify = true;
    } else if (option == "--help" || option == "-h") {
      options.help = true;
    } else {
      throw UserError(fmt::format("there is no option '{}'", option));
    }
  }
  return options;
}

}  // namespace heat_conduction
