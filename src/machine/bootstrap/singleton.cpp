#include "machine/bootstrap/singleton.h"

#include <unistd.h>

#include "base/format.h"
#include "machine/bootstrap/last_words.h"

namespace weft::machine {

base::Status Bootstrap::ask_for_resize(std::uint32_t) {
  return {base::StatusCode::kUnsupported, "this launcher cannot change the number of PEs of a job"};
}

base::Status Bootstrap::start_job(std::string_view) {
  return {base::StatusCode::kUnsupported,
          base::format("the launcher of this job ({}) starts no further processes for it; start the program "
                       "with `weft run -n {}`",
                       name(), num_pes())};
}

}  // namespace weft::machine

namespace weft::machine::bootstrap {

base::Result<std::vector<std::vector<std::byte>>> SingletonBootstrap::exchange(
    const std::vector<std::byte>& mine) {
  return std::vector<std::vector<std::byte>>{mine};
}

// The time: another process may have had the number before.
std::string SingletonBootstrap::unique_name() const {
  return base::format("process {} {}", getpid(), started_.time_since_epoch().count());
}

void SingletonBootstrap::abort(int /*exit_code*/, std::string_view message) { print_last_words(message); }

}  // namespace weft::machine::bootstrap
