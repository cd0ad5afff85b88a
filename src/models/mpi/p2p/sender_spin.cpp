#include "models/mpi/p2p/sender_spin.h"

namespace weft::mpi {

namespace {

// After so many waits in vain a sender stops.
constexpr int kWaits = 3;

}  // namespace

void SenderSpin::told(bool is_late) {
  expects_offer_ = true;
  if (!is_late || waits_left_ > 0) return;
  if (late_offers_left_ == 0) {
    waits_left_ = kWaits;
  } else {
    --late_offers_left_;
  }
}

bool SenderSpin::may_wait(std::uint32_t num_heard) {
  const bool has_heard = expects_offer_ || num_heard_ != num_heard;
  num_heard_ = num_heard;
  follows_ = !has_heard && was_accepted_;
  const bool may_come = has_heard || (follows_ && follows_left_ == 0);
  if (follows_ && follows_left_ > 0) --follows_left_;
  return may_come && waits_left_ > 0;
}

void SenderSpin::sent(bool has_waited, bool has_offer) {
  const bool was_in_vain = has_waited && !has_offer;
  if (has_waited && has_offer) {
    waits_left_ = kWaits;
    waits_in_vain_ = 0;
  } else if (was_in_vain && --waits_left_ == 0) {
    late_offers_left_ = waits_in_vain_ = times_to_skip(waits_in_vain_);
  }
  if (follows_ && was_in_vain) follows_left_ = follows_in_vain_ = times_to_skip(follows_in_vain_);
  if (follows_ && has_offer) follows_left_ = follows_in_vain_ = 0;
  expects_offer_ = was_in_vain;
  was_accepted_ = has_offer;
}

}  // namespace weft::mpi
