#include "machine/bootstrap/singleton.h"

#include "machine/bootstrap/last_words.h"

namespace weft::machine::bootstrap {

base::Result<std::vector<std::vector<std::byte>>> SingletonBootstrap::exchange(
    const std::vector<std::byte>& mine) {
  return std::vector<std::vector<std::byte>>{mine};
}

void SingletonBootstrap::abort(int /*exit_code*/, std::string_view message) { print_last_words(message); }

}  // namespace weft::machine::bootstrap
