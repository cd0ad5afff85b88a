#include "machine/bootstrap/pmi/pmi.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "base/host_number.h"
#include "machine/bootstrap/last_words.h"
#include "machine/bootstrap/launcher/local_pes.h"

namespace weft::machine::bootstrap {
namespace {

using base::Result;
using base::Status;
using base::StatusCode;

constexpr int kMaxPmiPes = 1 << 20;
constexpr std::string_view kDigits = "0123456789abcdef";

std::string to_digits(std::span<const std::byte> bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<std::size_t>(byte >> 4)];
    text += kDigits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return text;
}

// Appends the bytes; false if the text is not an even number of digits.
bool from_digits(std::string_view text, std::vector<std::byte>& bytes) {
  if (text.size() % 2 != 0) return false;
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const std::size_t high = kDigits.find(text[i]);
    const std::size_t low = kDigits.find(text[i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) return false;
    bytes.push_back(static_cast<std::byte>(16 * high + low));
  }
  return true;
}

Result<int> pmi_number(const char* variable, int low, int high) {
  const char* const text = std::getenv(variable);
  int value = 0;
  const char* const end = text == nullptr ? nullptr : text + std::strlen(text);
  if (text != nullptr) {
    const auto [stopped, error] = std::from_chars(text, end, value);
    if (error == std::errc() && stopped == end && value >= low && value <= high) return value;
  }
  return Status(
      StatusCode::kInvalidArgument,
      base::format("the environment variable {}='{}' is not a number from {} to {}: the launcher (MPICH's "
                   "mpiexec, srun --mpi=pmi2) sets it",
                   variable, text == nullptr ? "" : text, low, high));
}

// The keys of PE `pe`'s bytes in exchange `round`: one for the size, one for each piece.
std::string size_key(int round, int pe) { return base::format("weft-{}-{}-size", round, pe); }
std::string piece_key(int round, int pe, std::size_t piece) {
  return base::format("weft-{}-{}-{}", round, pe, piece);
}

}  // namespace

Result<PmiSettings> PmiSettings::from_environment() {
  PmiSettings settings;
  Result<int> num_pes = pmi_number("PMI_SIZE", 1, kMaxPmiPes);
  if (!num_pes.ok()) return num_pes.status();
  Result<int> pe = pmi_number("PMI_RANK", 0, *num_pes - 1);
  if (!pe.ok()) return pe.status();
  Result<int> fd = pmi_number("PMI_FD", 0, 1 << 30);
  if (!fd.ok()) return fd.status();
  settings.num_pes = *num_pes;
  settings.pe = *pe;
  settings.fd = *fd;
  settings.host = base::host_number();
  return settings;
}

Result<std::unique_ptr<Bootstrap>> PmiBootstrap::join(const PmiSettings& settings) {
  std::unique_ptr<PmiBootstrap> self(new PmiBootstrap(settings));
  if (Status status = self->start(); status.failed()) return status;
  Result<LocalPes> local = find_local_pes(*self, settings.host);
  if (!local.ok()) return local.status();
  self->local_ = *local;
  return std::unique_ptr<Bootstrap>(std::move(self));
}

Status PmiBootstrap::start() {
  auto begun = launcher_.ask("init", "pmi_version=1 pmi_subversion=1", "response_to_init");
  if (!begun.ok()) {
    const Status why = located(begun.status(), "joining the job");
    return {why.code(),
            base::format("{}. PMI_FD serves one Weft program: for a second one start the launcher again; set "
                         "WEFT_BOOTSTRAP=singleton for a program that a PE starts",
                         why.message())};
  }
  auto named = launcher_.ask("get_my_kvsname", "", "my_kvsname");
  if (!named.ok()) return located(named.status(), "joining the job");
  store_ = (*named)["kvsname"];
  return {};
}

Status PmiBootstrap::put(const std::string& key, std::string_view value) {
  auto done =
      launcher_.ask("put", base::format("kvsname={} key={} value={}", store_, key, value), "put_result");
  return done.ok() ? Status() : located(done.status(), "giving data to the launcher");
}

Result<std::string> PmiBootstrap::get(int pe, const std::string& key) {
  auto answer = launcher_.ask("get", base::format("kvsname={} key={}", store_, key), "get_result");
  if (!answer.ok()) return located(answer.status(), base::format("reading what PE {} gave", pe));
  return (*answer)["value"];
}

Result<std::vector<std::vector<std::byte>>> PmiBootstrap::exchange(const std::vector<std::byte>& mine) {
  const int round = round_++;
  if (Status status = put(size_key(round, pe()), std::to_string(mine.size())); status.failed()) return status;
  for (std::size_t begin = 0; begin < mine.size(); begin += kPieceBytes) {
    const auto piece = std::span(mine).subspan(begin, std::min(kPieceBytes, mine.size() - begin));
    Status status = put(piece_key(round, pe(), begin / kPieceBytes), to_digits(piece));
    if (status.failed()) return status;
  }
  if (Status status = barrier(); status.failed()) return status;
  std::vector<std::vector<std::byte>> all;
  for (int pe = 0; pe < num_pes(); ++pe) {
    auto bytes = get_bytes(pe, round);
    if (!bytes.ok()) return bytes.status();
    all.push_back(std::move(bytes).value());
  }
  return all;
}

Result<std::vector<std::byte>> PmiBootstrap::get_bytes(int pe, int round) {
  const auto malformed = [&](std::string_view text) {
    return Status(StatusCode::kCorrupt, base::format("PE {}: what PE {} gave arrived through PMI as '{}'",
                                                     settings_.pe, pe, text.substr(0, 40)));
  };
  auto size_text = get(pe, size_key(round, pe));
  if (!size_text.ok()) return size_text.status();
  std::size_t size_bytes = 0;
  const char* const end = size_text->data() + size_text->size();
  const auto [stopped, error] = std::from_chars(size_text->data(), end, size_bytes);
  if (error != std::errc() || stopped != end || size_bytes > kMaxBytes) return malformed(*size_text);
  std::vector<std::byte> bytes;
  for (std::size_t piece = 0; bytes.size() < size_bytes; ++piece) {
    auto text = get(pe, piece_key(round, pe, piece));
    if (!text.ok()) return text.status();
    const std::size_t expected = std::min(kPieceBytes, size_bytes - bytes.size());
    if (text->size() != 2 * expected || !from_digits(*text, bytes)) return malformed(*text);
  }
  return bytes;
}

Status PmiBootstrap::barrier() {
  auto done = launcher_.ask("barrier_in", "", "barrier_out");
  return done.ok() ? Status() : located(done.status(), "waiting for the other PEs");
}

// The answer matters to nobody: the launcher knows from the request that this PE is done.
void PmiBootstrap::finished(int /*exit_code*/) {
  [[maybe_unused]] const auto answer = launcher_.ask("finalize", "", "finalize_ack");
}

void PmiBootstrap::abort(int exit_code, std::string_view message) {
  print_last_words(message);
  [[maybe_unused]] const Status status =
      launcher_.tell("abort", base::format("exitcode={}", exit_code == 0 ? 1 : exit_code));
}

Status PmiBootstrap::watch_status() {
  if (!launcher_.has_ended()) return {};
  return {
      StatusCode::kPeerFailed,
      base::format(
          "PE {} lost its launcher: the connection (PMI_FD={}) has ended. The job cannot continue without "
          "it; start it again",
          pe(), launcher_.fd())};
}

Status PmiBootstrap::located(const Status& status, std::string_view what) const {
  return {
      StatusCode::kPeerFailed,
      base::format("PE {}: {} failed: {}. Another PE or the launcher has ended; its own message says more",
                   pe(), what, status.message())};
}

}  // namespace weft::machine::bootstrap
