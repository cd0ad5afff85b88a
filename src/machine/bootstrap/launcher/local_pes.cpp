#include "machine/bootstrap/launcher/local_pes.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace weft::machine::bootstrap {

LocalPes local_pes(const std::vector<std::vector<std::byte>>& hosts, int pe) {
  const std::vector<std::byte>& mine = hosts.at(static_cast<std::size_t>(pe));
  return {.rank = static_cast<int>(std::count(hosts.begin(), hosts.begin() + pe, mine)),
          .size = static_cast<int>(std::count(hosts.begin(), hosts.end(), mine))};
}

base::Result<LocalPes> find_local_pes(Bootstrap& bootstrap, std::uint64_t host, int notice_ms,
                                      const Say& say) {
  std::vector<std::byte> mine(sizeof host);
  std::memcpy(mine.data(), &host, mine.size());
  const StartNotice notice(bootstrap, notice_ms, say);
  auto all = bootstrap.exchange(mine);
  if (!all.ok()) return all.status();
  return local_pes(*all, bootstrap.pe());
}

}  // namespace weft::machine::bootstrap
