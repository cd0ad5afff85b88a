#include <cstdlib>

#include "machine/bootstrap/bootstrap.h"
#include "machine/bootstrap/local.h"
#include "machine/bootstrap/pmix.h"
#include "machine/bootstrap/singleton.h"

namespace weft::machine {

base::Result<std::unique_ptr<Bootstrap>> make_bootstrap() {
  if (std::getenv("WEFT_BOOTSTRAP") != nullptr) {
    base::Result<bootstrap::LocalSettings> settings = bootstrap::LocalSettings::from_environment();
    if (!settings.ok()) return settings.status();
    return bootstrap::LocalBootstrap::join(*settings);
  }
  if (std::getenv("PMIX_NAMESPACE") != nullptr) return bootstrap::PmixBootstrap::join();
  return std::unique_ptr<Bootstrap>(std::make_unique<bootstrap::SingletonBootstrap>());
}

}  // namespace weft::machine
