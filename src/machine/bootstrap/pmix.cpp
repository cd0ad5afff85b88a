#include "machine/bootstrap/pmix.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/format.h"
#include "machine/bootstrap/last_words.h"

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

}  // namespace

Result<std::unique_ptr<Bootstrap>> PmixBootstrap::join() {
  Result<PmixLibrary> library = PmixLibrary::load();
  if (!library.ok()) return library.status();
  std::unique_ptr<PmixBootstrap> self(new PmixBootstrap(std::move(library).value()));
  const int code = self->library_.init(&self->self_, nullptr, 0);
  if (Status status = self->check(code, "joining the job (PMIx_Init)"); status.failed()) return status;
  if (Status status = self->read_job(); status.failed()) return status;
  return std::unique_ptr<Bootstrap>(std::move(self));
}

Status PmixBootstrap::read_job() {
  PmixProcess whole_job = self_;
  whole_job.rank = kPmixRankWildcard;
  Result<int> num_pes = job_number(whole_job, kPmixJobSize);
  if (!num_pes.ok()) return num_pes.status();
  Result<int> local_size = job_number(whole_job, kPmixLocalSize);
  if (!local_size.ok()) return local_size.status();
  Result<int> local_rank = job_number(self_, kPmixLocalRank);
  if (!local_rank.ok()) return local_rank.status();
  num_pes_ = *num_pes;
  local_size_ = *local_size;
  local_rank_ = *local_rank;
  return {};
}

Result<int> PmixBootstrap::job_number(const PmixProcess& process, const char* key) {
  PmixValue* raw = nullptr;
  const int code = library_.get(&process, key, nullptr, 0, &raw);
  if (Status status = check(code, base::format("asking the launcher for {}", key)); status.failed())
    return status;
  const OwnedValue value(raw);
  if (value->type == kPmixUint32) return static_cast<int>(value->uint32);
  if (value->type == kPmixUint16) return static_cast<int>(value->uint16);
  return Status(StatusCode::kCorrupt,
                base::format("PE {}: the PMIx launcher gave {} with type {}, neither uint16 nor uint32", pe(),
                             key, value->type));
}

Result<std::vector<std::vector<std::byte>>> PmixBootstrap::exchange(const std::vector<std::byte>& mine) {
  const std::string key = base::format("weft.exchange.{}", round_++);
  // Some servers drop values without bytes, so there is always one more.
  std::vector<std::byte> padded = mine;
  padded.push_back(std::byte{0});
  PmixValue value{};
  value.type = kPmixByteObject;
  value.bytes = {reinterpret_cast<char*>(padded.data()), padded.size()};
  int code = library_.put(kPmixScopeGlobal, key.c_str(), &value);
  if (code == kPmixSuccess) code = library_.commit();
  if (code == kPmixSuccess) {
    PmixInfo collect{};
    std::strncpy(collect.key, kPmixCollectData, sizeof(collect.key) - 1);
    collect.value.type = kPmixBool;
    collect.value.flag = true;
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
