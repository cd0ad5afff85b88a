#include "models/mpi/rank.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::mpi {

namespace {

[[noreturn]] void end_process(const std::string& sentence, int status) {
  std::fprintf(stderr, "%s\n", sentence.c_str());
  std::fflush(nullptr);
  std::_Exit(status == 0 ? EXIT_FAILURE : status);
}

Ref<ErrorHandler> make_handler(ErrorHandler::Action action) {
  return Ref<ErrorHandler>::adopt(new ErrorHandler(action));
}

class NoFile final : public ErrorScope {
 public:
  explicit NoFile(Ref<ErrorHandler> handler) : ErrorScope(ObjectKind::kFile, std::move(handler)) {
    set_name("MPI_FILE_NULL");
  }
};

// The arguments of this process, from the system: a library that is loaded by a script language sees no main().
Info::Pairs program_environment() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
  // The program that hosts virtual ranks has theirs as its first argument.
  constexpr std::string_view kHost = "weft-mpi-host";
  const std::string_view command = arguments.empty() ? std::string_view() : arguments.front();
  if (command.substr(command.rfind('/') + 1) == kHost) arguments.erase(arguments.begin());
  std::vector<const char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(argument.c_str());
  return environment_pairs(static_cast<int>(pointers.size()), pointers.data());
}

}  // namespace

Rank::Rank(PredefinedAttributes& attributes)
    : errors_are_fatal(make_handler(ErrorHandler::Action::kEndJob)),
      errors_abort(make_handler(ErrorHandler::Action::kAbort)),
      errors_return(make_handler(ErrorHandler::Action::kReturn)),
      error_codes(&attributes.last_used_code),
      environment(Ref<Info>::adopt(new Info(program_environment()))),
      empty_group(Ref<Group>::adopt(new Group(std::make_shared<Members>()))),
      predefined_attributes(attributes),
      no_file(Ref<ErrorScope>::adopt(new NoFile(errors_return))),
      end_job(&end_process) {}

bool Rank::is_first_report(const std::string& name) {
  const std::lock_guard lock(mutex_);
  return reported_.insert(name).second;
}

Rank& RunningRank::of_process() {
  // Never destroyed: a program may call MPI in its destructors.
  static PredefinedAttributes attributes;
  static Rank* const rank = new Rank(attributes);
  set(rank);
  return *rank;
}

}  // namespace weft::mpi
