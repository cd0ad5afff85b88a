#include "machine/host_queue/waiting_messages.h"

namespace weft::machine {

void WaitingMessages::add(int pe, AmId id, std::span<const std::byte> header,
                          std::span<const std::byte> payload, base::Completion* completion) {
  std::vector<std::byte> copy;
  if (completion == nullptr) copy.assign(payload.begin(), payload.end());
  by_pe_[pe].push_back({id, {header.begin(), header.end()}, std::move(copy), payload, completion});
}

std::vector<base::Completion*> WaitingMessages::take_completions() {
  std::vector<base::Completion*> taken;
  for (const auto& [pe, messages] : std::exchange(by_pe_, {})) {
    for (const Waiting& one : messages) {
      if (one.completion != nullptr) taken.push_back(one.completion);
    }
  }
  return taken;
}

std::vector<base::Completion*> WaitingMessages::take_completions(int pe) {
  const auto node = by_pe_.extract(pe);
  std::vector<base::Completion*> taken;
  if (node.empty()) return taken;
  for (const Waiting& one : node.mapped()) {
    if (one.completion != nullptr) taken.push_back(one.completion);
  }
  return taken;
}

}  // namespace weft::machine
