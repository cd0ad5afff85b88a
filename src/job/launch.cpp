#include "job/launch.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <utility>

#include "weft/base/error.h"

#include "base/format.h"
#include "base/value_or_throw.h"
#include "machine/bootstrap/launcher/start_notice.h"

namespace weft::job {

Launch::Launch(std::unique_ptr<machine::bootstrap::StartingBootstrap> bootstrap)
    : bootstrap_(std::move(bootstrap)) {}
Launch::~Launch() = default;
Launch::Launch(Launch&&) noexcept = default;

Launch Launch::join(bool can_begin_again) {
  return Launch(std::make_unique<machine::bootstrap::StartingBootstrap>(
      base::value_or_throw(machine::make_bootstrap(can_begin_again))));
}

int Launch::pe() const { return bootstrap_->pe(); }
int Launch::num_pes() const { return bootstrap_->num_pes(); }
std::uint32_t Launch::incarnation() const { return bootstrap_->incarnation().number; }

std::vector<std::string> Launch::exchange(std::string_view text) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(text.data());
  const auto all =
      base::value_or_throw(bootstrap_->exchange(std::vector<std::byte>(bytes, bytes + text.size())));
  std::vector<std::string> texts;
  texts.reserve(all.size());
  for (const std::vector<std::byte>& theirs : all)
    texts.emplace_back(reinterpret_cast<const char*>(theirs.data()), theirs.size());
  return texts;
}

void Launch::leave(int exit_code) {
  bootstrap_->start_is_complete();  // it waits as long as the others run
  const std::vector<std::string> texts = exchange(kHasLeft);
  const auto other = std::ranges::find_if(texts, [](const std::string& text) { return text != kHasLeft; });
  if (other != texts.end()) {
    throw base::Error(
        base::StatusCode::kPeerFailed,
        base::format("PE {} starts a job, and PE {} has ended without it", other - texts.begin(), pe()));
  }
  // Servers of PMIx may hang if a process leaves while another one still reads what was exchanged.
  base::check(bootstrap_->barrier());
  bootstrap_->finished(exit_code);
}

void print_unless_launcher_did(base::StatusCode code, const std::string& sentence) {
  if (code != base::StatusCode::kCancelled) std::fputs(sentence.c_str(), stderr);
}

}  // namespace weft::job
