// The lines that `weft run --stats` prints about the transfers of one PE.
#pragma once

#include <string>
#include <vector>

#include "machine/machine.h"

namespace weft::machine {

// A table of what was moved in each way, and one of the peers by transport; lines of "weft: PE n: ...".
std::string transfer_report(int pe, const std::vector<TransportUse>& uses,
                            const std::vector<PeerTransports>& peers);

}  // namespace weft::machine
