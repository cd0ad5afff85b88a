#include "weft/pgas/pgas.h"

#include "weft/pgas/rpc.h"

#include "models/pgas/teams.h"
#include "rma/flag_wait.h"

namespace weft::pgas {

Pgas::Pgas(runtime::Runtime& runtime, const runtime::ModelRange& range)
    : GlobalMemory(runtime, range.first_handler),
      teams_(std::make_unique<Teams>(
          runtime, static_cast<runtime::HandlerId>(range.first_handler + GlobalMemory::kNumHandlers))) {
  static_assert(kNumTeamHandlers == Teams::kNumHandlers);
  // The function behind a copy is one of those that PEs call, see remote_call.h.
  set_remote_hook(
      [](void* self, int, std::uint32_t function, std::span<const std::byte> bytes) {
        run_packed(static_cast<Pgas*>(self)->world(), {function, {bytes.begin(), bytes.end()}});
      },
      this);
}

Pgas::~Pgas() = default;

World& Pgas::world() { return teams_->world(); }

std::vector<std::pair<std::string, std::string>> Pgas::fingerprint() const { return teams_->fingerprint(); }
std::vector<std::string> Pgas::report() const { return teams_->report(); }

bool Pgas::describe_operation(const runtime::OperationState& operation, runtime::Wait& wait,
                              runtime::WaitList&) const {
  wait.what = rma::describe_flag_wait(operation);
  return !wait.what.empty();
}

World& world_of(runtime::Runtime& runtime) { return runtime.model<Pgas>().world(); }

void Pgas::close() { GlobalMemory::close(); }

std::vector<runtime::ModelOption> Pgas::options() {
  return {{"WEFT_PGAS_MAPPING", "on or off", [this](std::string_view value) {
             set_mapping(value != "off");
             return value == "on" || value == "off";
           }}};
}

}  // namespace weft::pgas
