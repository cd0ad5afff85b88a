// A chare that plays ping-pong, or sends windows, to another by entry methods.
//
// A message of 8 bytes is an integer argument, any other size a span of bytes: a value, which the method views where it
// arrived. The caller's buffers are those of the channel's programs. With --way measured the class is one whose elements
// load balancing measures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "weft/weft.h"

#include "benchmarks/buffers.h"
#include "benchmarks/measuring.h"

namespace weft::benchmarks {

template <template <class> class Base>
class BasicEntryPeer : public Base<BasicEntryPeer<Base>> {
 public:
  using Self = BasicEntryPeer;

  explicit BasicEntryPeer(bool pinned) {
    if (pinned) pin(this->pe());
  }

  // Plays `step` with element `partner`; `done` gets the seconds of the timed part.
  void begin(int bench, Step step, int partner, weft::Future<double> done) {
    bench_ = static_cast<Bench>(bench);
    partner_ = partner;
    size_bytes_ = step.size_bytes;
    data_ = Buffers(this->runtime(), weft::Kind::kHost, step.size_bytes, step.buffers);
    left_ = step.warmup;
    timed_left_ = step.iterations;
    done_ = done;
    next();
  }

  void ping(int from, std::uint64_t number) { this->proxy()[from].template send<&Self::pong>(number); }
  void ping_bytes(int from, std::span<const std::byte> data) {
    this->proxy()[from].template send<&Self::pong_bytes>(data);
  }
  void pong(std::uint64_t) { next(); }
  void pong_bytes(std::span<const std::byte>) { next(); }

  void take(int from, std::uint64_t) { count(from); }
  void take_bytes(int from, std::span<const std::byte>) { count(from); }
  void acknowledge() { next(); }

 private:
  void next() {
    if (left_ == 0) {
      if (timed_left_ == 0) return done_.set(stopwatch_.elapsed_s());
      left_ = timed_left_;
      timed_left_ = 0;
      stopwatch_ = Stopwatch();
    }
    --left_;
    if (bench_ == Bench::kLatency) {
      send<&Self::ping, &Self::ping_bytes>();
    } else {
      for (int i = 0; i < kWindow; ++i) send<&Self::take, &Self::take_bytes>();
    }
  }

  template <auto Number, auto Bytes>
  void send() {
    auto partner = this->proxy()[partner_];
    int self = this->index();
    if (size_bytes_ == sizeof(std::uint64_t)) {
      partner.template send<Number>(self, std::uint64_t{1});
    } else {
      partner.template send<Bytes>(self, data_.next().span());
    }
  }

  void count(int from) {
    if (++arrived_ < kWindow) return;
    arrived_ = 0;
    this->proxy()[from].template send<&Self::acknowledge>();
  }

  Bench bench_ = Bench::kLatency;
  int partner_ = 0;
  std::size_t size_bytes_ = 0;
  Buffers data_;
  std::int64_t left_ = 0;
  std::int64_t timed_left_ = 0;
  std::int64_t arrived_ = 0;
  Stopwatch stopwatch_;
  weft::Future<double> done_;
};

template <class T>
class MeasuredChare : public weft::Chare<T> {
 public:
  void resume_from_sync() override {}
};
using EntryPeer = BasicEntryPeer<weft::Chare>;
using MeasuredEntryPeer = BasicEntryPeer<MeasuredChare>;

// The steps one after the other, between elements 0 and 1 of `peers`.
template <class Peer>
weft::Task<> play(weft::Runtime& runtime, weft::CollectionProxy<Peer> peers, const Arguments& arguments) {
  for (const Step& step : arguments.steps) {
    weft::Future<double> done(runtime);
    peers[0].template send<&Peer::begin>(static_cast<int>(arguments.bench), step, /*partner=*/1, done);
    report(arguments.bench, step, co_await done);
  }
}

}  // namespace weft::benchmarks
