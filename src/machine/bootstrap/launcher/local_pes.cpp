#include "machine/bootstrap/launcher/local_pes.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace weft::machine::bootstrap {

base::Result<LocalPes> exchange_local_pes(Bootstrap& bootstrap, std::uint64_t host) {
  std::vector<std::byte> mine(sizeof host);
  std::memcpy(mine.data(), &host, mine.size());
  auto all = bootstrap.exchange(mine);
  if (!all.ok()) return all.status();
  return LocalPes{.rank = static_cast<int>(std::count(all->begin(), all->begin() + bootstrap.pe(), mine)),
                  .size = static_cast<int>(std::count(all->begin(), all->end(), mine))};
}

base::Result<LocalPes> find_local_pes(Bootstrap& bootstrap, std::uint64_t host, int notice_ms,
                                      const Say& say) {
  const StartNotice notice(bootstrap, notice_ms, say);
  return exchange_local_pes(bootstrap, host);
}

}  // namespace weft::machine::bootstrap
