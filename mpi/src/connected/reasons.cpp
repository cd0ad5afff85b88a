#include "connected/reasons.h"

#include <cstdio>
#include <string>

#include "base/format.h"

namespace weft::mpi {

Error with_reason(const char* function, const Meeting& meeting, Error error) {
  const Communicator& communicator = meeting.communicator;
  const bool returns = communicator.error_handler()->action() == ErrorHandler::Action::kReturn;
  if (error.ok() || !returns || communicator.rank() != meeting.root) return error;
  const std::string line = base::format("weft: {}: {}\n", function, error.text);
  if (this_rank().is_first_report(line)) std::fputs(line.c_str(), stderr);
  return error;
}

}  // namespace weft::mpi
