#include "models/chare/reductions/engine_merges.h"

#include <algorithm>
#include <array>
#include <exception>
#include <limits>
#include <numeric>
#include <utility>

#include "weft/base/error.h"
#include "weft/runtime/work.h"

#include "base/format.h"
#include "collective/engine.h"
#include "collective/run.h"

namespace weft::chare {

namespace {

// A board of 4 MiB holds what a PE sends of four pieces. Two keep a PE busy while it waits for others.
constexpr std::size_t kMostPieceBytes = std::size_t{1} << 20;
constexpr std::size_t kMostPiecesAtOnce = 2;
// Of the values of a collection, half of a board.
constexpr std::size_t kMostBytesAtOnce = std::size_t{2} << 20;

// Of the number of a group: the root PE of the scope, and its id. Of that of a call: the piece, and the reduction.
constexpr int kScopeIdBits = 48;
constexpr int kSequenceBits = 40;
constexpr std::uint64_t kMostSequences = std::uint64_t{1} << kSequenceBits;
constexpr std::size_t kMostPieces = std::size_t{1} << (64 - kSequenceBits);

std::uint64_t number_of_group(runtime::ScopeId scope) {
  return collective::group_number(collective::Owner::kChares,
                                  std::uint64_t{scope.root_pe} << kScopeIdBits | scope.id);
}

std::size_t divided_up(std::size_t amount, std::size_t by) { return (amount + by - 1) / by; }

}  // namespace

class EngineMerges::MergeInPieces : private runtime::Work {
 public:
  MergeInPieces(EngineMerges& all, collective::Group& group, const runtime::LargeMerge& what)
      : Work(&MergeInPieces::on_turn),
        all_(all),
        group_(group),
        what_(what),
        num_elements_(what.elements.size() / what.layout.element_bytes),
        num_pieces_(divided_up(num_elements_,
                               std::max<std::size_t>(kMostPieceBytes / what.layout.element_bytes, 1))) {}

  void begin() {
    for (std::unique_ptr<Piece>& place : places_) begin_next(place);
  }
  bool has_begun() const { return num_begun_ > 0; }
  bool is_of(runtime::ScopeId scope) const { return what_.scope == scope; }
  std::uint64_t sequence() const { return what_.sequence; }
  std::size_t bytes_at_once() const {
    return std::min(what_.elements.size(), kMostPiecesAtOnce * kMostPieceBytes);
  }
  // The last piece is over, and the turn comes that frees this.
  bool is_posted() const { return is_posted_; }
  // Nobody is called in that turn.
  void forget_reduction() { is_wanted_ = false; }

 private:
  // It ends in the arrival of a message, and is freed there.
  class Piece final : public collective::Run {
   public:
    Piece(MergeInPieces& whole, std::unique_ptr<Piece>& place, std::size_t number)
        : Run(whole.group_, whole.call_of(number)), whole_(whole), place_(place) {
      // Each member merges a block of the piece.
      const auto size = static_cast<std::size_t>(whole.group_.member().size);
      const std::size_t count = whole.first_of(number + 1) - whole.first_of(number);
      for (std::size_t i = 0; i <= size; ++i)
        begins_.push_back((i * (count / size) + std::min(i, count % size)) *
                          whole.what_.layout.element_bytes);
      call().begins = begins_.data();
    }

   private:
    void ended() override { whole_.piece_ended(*this, place_); }

    MergeInPieces& whole_;
    std::unique_ptr<Piece>& place_;
    std::vector<std::size_t> begins_;
  };

  // The first element of a piece.
  std::size_t first_of(std::size_t piece) const {
    return piece * (num_elements_ / num_pieces_) + std::min(piece, num_elements_ % num_pieces_);
  }
  collective::Call call_of(std::size_t piece) {
    const std::size_t element_bytes = what_.layout.element_bytes;
    return {.kind = what_.target_pe < 0 ? collective::Kind::kAllreduce : collective::Kind::kReduce,
            .root = std::max(what_.target_pe, 0),
            .number = piece << kSequenceBits | what_.sequence,
            .form = collective::Form::kDirect,
            .data = what_.elements.data() + first_of(piece) * element_bytes,
            .block_bytes = (first_of(piece + 1) - first_of(piece)) * element_bytes,
            .combiner = {.combine = &combine, .context = this, .is_commutative = true}};
  }
  static bool combine(void* self, const std::byte* left, std::byte* right, std::size_t size_bytes) {
    const runtime::LargeMerge& what = static_cast<MergeInPieces*>(self)->what_;
    what.layout.merge(what.reducer, right, left, right, size_bytes / what.layout.element_bytes);
    return true;
  }
  void begin_next(std::unique_ptr<Piece>& place) {
    if (num_begun_ == num_pieces_) return;
    place = std::make_unique<Piece>(*this, place, num_begun_++);
    place->start();
  }
  void piece_ended(const Piece& piece, std::unique_ptr<Piece>& place) {
    if (piece.has_failed() && !has_failed_) {
      has_failed_ = true;
      error_ = piece.error();
    }
    place.reset();
    if (++num_over_ == num_pieces_) {
      is_posted_ = true;
      return all_.runtime_.post(this);
    }
    begin_next(place);
  }
  std::exception_ptr failure() const {
    if (!has_failed_ || error_ != nullptr) return error_;
    return std::make_exception_ptr(
        base::Error(base::StatusCode::kPeerFailed,
                    base::format("PE {} could not merge {} bytes with the other PEs, of which one has failed",
                                 all_.runtime_.pe(), what_.elements.size())));
  }
  static void on_turn(Work* self, runtime::Runtime& runtime, runtime::WorkAction action) {
    auto* const merge = static_cast<MergeInPieces*>(self);
    const runtime::LargeMerge what = merge->what_;  // with its memory
    const std::exception_ptr error = merge->failure();
    const bool is_wanted = merge->is_wanted_;
    EngineMerges& all = merge->all_;
    all.forget(*merge);
    if (action != runtime::WorkAction::kRun || !is_wanted) return;
    all.begin_ready(what.scope);
    runtime.reductions().end_merge(what.scope, what.sequence, error);
  }

  EngineMerges& all_;
  collective::Group& group_;
  const runtime::LargeMerge what_;
  const std::size_t num_elements_;
  const std::size_t num_pieces_;
  std::size_t num_begun_ = 0;
  std::size_t num_over_ = 0;
  bool is_posted_ = false;
  bool is_wanted_ = true;
  bool has_failed_ = false;
  std::exception_ptr error_;
  std::array<std::unique_ptr<Piece>, kMostPiecesAtOnce> places_;
};

EngineMerges::EngineMerges(runtime::Runtime& runtime)
    : runtime_(runtime),
      sizes_(collective::direct_sizes(
          collective::Kind::kAllreduce, runtime.num_pes(),
          runtime.is_on_one_host() ? collective::Spread::kOneHost : collective::Spread::kSharedHosts)) {}

EngineMerges::~EngineMerges() = default;

std::size_t EngineMerges::least_bytes() const {
  return sizes_.least <= sizes_.most ? sizes_.least : std::numeric_limits<std::size_t>::max();
}

bool EngineMerges::takes(runtime::ScopeId scope, std::uint64_t sequence, std::size_t size_bytes) const {
  return size_bytes >= least_bytes() && size_bytes / kMostPieceBytes < kMostPieces / 2 &&
         scope.id < std::uint64_t{1} << kScopeIdBits && sequence < kMostSequences;
}

void EngineMerges::start(const runtime::LargeMerge& merge) {
  under_way_.push_back(std::make_unique<MergeInPieces>(*this, group_of(merge.scope), merge));
  begin_ready(merge.scope);
}

void EngineMerges::begin_ready(runtime::ScopeId scope) {
  const auto is_ready = [&](const std::unique_ptr<MergeInPieces>& one) {
    if (one->has_begun() || !one->is_of(scope)) return false;
    std::size_t bytes_before = 0;
    for (const std::unique_ptr<MergeInPieces>& other : under_way_)
      if (other->is_of(scope) && other->sequence() < one->sequence()) bytes_before += other->bytes_at_once();
    return bytes_before < kMostBytesAtOnce;
  };
  for (const std::unique_ptr<MergeInPieces>& one : under_way_)
    if (is_ready(one)) one->begin();
}

void EngineMerges::close(runtime::ScopeId scope, bool others_may_send) {
  if (groups_.empty() && !others_may_send) return;
  std::erase_if(under_way_, [scope](const std::unique_ptr<MergeInPieces>& one) {
    if (!one->is_of(scope)) return false;
    one->forget_reduction();
    return !one->is_posted();
  });
  // Calls that others have begun and this PE has not end there when they close the scope. Without such calls nothing more comes: a member
  // of kDirect awaits all that is sent to it.
  if (others_may_send && takes(scope, 0, least_bytes())) group_of(scope).drop_all();
  groups_.erase(scope);
}

collective::Group& EngineMerges::group_of(runtime::ScopeId scope) {
  std::shared_ptr<collective::Group>& group = groups_[scope];
  if (group == nullptr) {
    std::vector<int> pes(static_cast<std::size_t>(runtime_.num_pes()));
    std::iota(pes.begin(), pes.end(), 0);
    group = runtime_.model<collective::Engine>().group(number_of_group(scope), pes, runtime_.pe());
  }
  return *group;
}

void EngineMerges::forget(const MergeInPieces& merge) {
  std::erase_if(under_way_,
                [&merge](const std::unique_ptr<MergeInPieces>& one) { return one.get() == &merge; });
}

}  // namespace weft::chare
