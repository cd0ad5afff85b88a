#include "machine/bootstrap/launcher/local_pes.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace weft::machine::bootstrap {

base::Result<LocalPes> find_local_pes(Bootstrap& bootstrap, std::uint64_t host, int notice_ms,
                                      const Say& say) {
  std::vector<std::byte> mine(sizeof host);
  std::memcpy(mine.data(), &host, mine.size());
  const StartNotice notice(bootstrap, notice_ms, say);
  auto all = bootstrap.exchange(mine);
  if (!all.ok()) return all.status();
  return LocalPes{.rank = static_cast<int>(std::count(all->begin(), all->begin() + bootstrap.pe(), mine)),
                  .size = static_cast<int>(std::count(all->begin(), all->end(), mine))};
}

}  // namespace weft::machine::bootstrap
