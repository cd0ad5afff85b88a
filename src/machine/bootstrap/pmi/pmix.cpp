#include "machine/bootstrap/pmi/pmix.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "base/format.h"
#include "base/host_number.h"
#include "machine/bootstrap/last_words.h"
#include "machine/bootstrap/launcher/launch_slot.h"

namespace weft::machine::bootstrap {
namespace {

using base::Result;
using base::Status;
using base::StatusCode;

// Values that PMIx_Get hands out, freed with their bytes.
class OwnedValue {
 public:
  explicit OwnedValue(PmixValue* value) : value_(value) {}
  OwnedValue(const OwnedValue&) = delete;
  OwnedValue& operator=(const OwnedValue&) = delete;
  ~OwnedValue() {
    if (value_->type == kPmixByteObject) std::free(value_->bytes.bytes);
    std::free(value_);
  }
  const PmixValue* operator->() const { return value_; }

 private:
  PmixValue* value_;
};

PmixInfo flag(const char* key) {
  PmixInfo info{};
  std::strncpy(info.key, key, sizeof(info.key) - 1);
  info.value.type = kPmixBool;
  info.value.flag = true;
  return info;
}

std::string exchange_key(int round) { return base::format("weft.exchange.{}", round); }

}  // namespace

Result<std::unique_ptr<Bootstrap>> PmixBootstrap::join() {
  const char* const job = std::getenv("PMIX_NAMESPACE");
  const char* const rank = std::getenv("PMIX_RANK");
  if (job != nullptr && rank != nullptr) {
    if (Status status = take_launch_slot(job, rank); status.failed()) return status;
  }
  Result<PmixLibrary> library = PmixLibrary::load();
  if (!library.ok()) return library.status();
  std::unique_ptr<PmixBootstrap> self(new PmixBootstrap(std::move(library).value()));
  const int code = self->library_.init(&self->self_, nullptr, 0);
  if (Status status = self->check(code, "joining the job (PMIx_Init)"); status.failed()) return status;
  if (Status status = self->read_num_pes(); status.failed()) return status;
  if (self->num_pes_ > 1) {
    if (Status status = self->expect_unused(); status.failed()) return status;
    Result<LocalPes> local = find_local_pes(*self, base::host_number());
    if (!local.ok()) return local.status();
    self->local_ = *local;
  }
  return std::unique_ptr<Bootstrap>(std::move(self));
}

Status PmixBootstrap::read_num_pes() {
  PmixProcess whole_job = self_;
  whole_job.rank = kPmixRankWildcard;
  PmixValue* raw = nullptr;
  const int code = library_.get(&whole_job, kPmixJobSize, nullptr, 0, &raw);
  if (Status status = check(code, "asking the launcher for the number of PEs"); status.failed())
    return status;
  const OwnedValue value(raw);
  if (value->type != kPmixUint32) {
    return Status(StatusCode::kCorrupt,
                  base::format("PE {}: the PMIx launcher gave {} with type {}, which is not uint32", pe(),
                               kPmixJobSize, value->type));
  }
  num_pes_ = static_cast<int>(value->uint32);
  return {};
}

// The servers of Open MPI keep what the first program gave. Slurm's forgets what it told the first program.
Status PmixBootstrap::expect_unused() {
  if (!has(exchange_key(0).c_str()) && has(kPmixLocalRank)) return {};
  // mpiexec of Open MPI hangs if it has to end a process that is just joining, and the others may be.
  std::this_thread::sleep_for(std::chrono::seconds(1));
  return launch_slot_is_used(std::to_string(pe()));
}

bool PmixBootstrap::has(const char* key) {
  const PmixInfo at_once = flag(kPmixImmediate);
  PmixValue* raw = nullptr;
  if (library_.get(&self_, key, &at_once, 1, &raw) != kPmixSuccess) return false;
  const OwnedValue value(raw);
  return true;
}

Result<std::vector<std::vector<std::byte>>> PmixBootstrap::exchange(const std::vector<std::byte>& mine) {
  const std::string key = exchange_key(round_++);
  // Some servers drop values without bytes, so there is always one more.
  std::vector<std::byte> padded = mine;
  padded.push_back(std::byte{0});
  PmixValue value{};
  value.type = kPmixByteObject;
  value.bytes = {reinterpret_cast<char*>(padded.data()), padded.size()};
  int code = library_.put(kPmixScopeGlobal, key.c_str(), &value);
  if (code == kPmixSuccess) code = library_.commit();
  if (code == kPmixSuccess) {
    const PmixInfo collect = flag(kPmixCollectData);
    code = library_.fence(nullptr, 0, &collect, 1);
  }
  if (Status status = check(code, "exchanging addresses with the other PEs"); status.failed()) return status;

  std::vector<std::vector<std::byte>> all(static_cast<std::size_t>(num_pes_));
  for (int pe = 0; pe < num_pes_; ++pe) {
    Result<std::vector<std::byte>> bytes = get_bytes(pe, key);
    if (!bytes.ok()) return bytes.status();
    all[static_cast<std::size_t>(pe)] = std::move(bytes).value();
  }
  return all;
}

Result<std::vector<std::byte>> PmixBootstrap::get_bytes(int pe, const std::string& key) {
  PmixProcess process = self_;
  process.rank = static_cast<std::uint32_t>(pe);
  PmixValue* raw = nullptr;
  const int code = library_.get(&process, key.c_str(), nullptr, 0, &raw);
  if (Status status = check(code, base::format("reading what PE {} gave", pe)); status.failed())
    return status;
  const OwnedValue value(raw);
  if (value->type != kPmixByteObject || value->bytes.size == 0) {
    return Status(StatusCode::kCorrupt,
                  base::format("PE {}: what PE {} gave arrived through PMIx with type {} instead of "
                               "bytes",
                               this->pe(), pe, value->type));
  }
  const auto* first = reinterpret_cast<const std::byte*>(value->bytes.bytes);
  return std::vector<std::byte>(first, first + value->bytes.size - 1);
}

Status PmixBootstrap::barrier() {
  return check(library_.fence(nullptr, 0, nullptr, 0), "waiting for the other PEs (PMIx_Fence)");
}

void PmixBootstrap::finished(int /*exit_code*/) { library_.finalize(nullptr, 0); }

// REQUIRES: no PE is inside exchange() or barrier(). The server of OpenPMIx 5.0.11rc1 (Open MPI's package) hangs
// or crashes if a fence is under way. A PE that fails during the start exits instead.
void PmixBootstrap::abort(int exit_code, std::string_view message) {
  print_last_words(message);
  library_.abort(exit_code == 0 ? 1 : exit_code, nullptr, nullptr, 0);
}

Status PmixBootstrap::check(int code, std::string_view what) const {
  if (code == kPmixSuccess) return {};
  return Status(
      StatusCode::kPeerFailed,
      base::format("PE {}: {} failed: {} (PMIx status {}, {}). Another PE or the launcher has ended; its own "
                   "message says more",
                   pe(), what, library_.error_string(code), code, library_.path));
}

}  // namespace weft::machine::bootstrap
