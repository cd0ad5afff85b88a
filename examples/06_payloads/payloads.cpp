// Arrays as arguments without a copy: from host memory, and from device to device into a place that the callee
// chooses. Runs on emulated devices; with GPUs say weft::Kind::kCuda.
//
//   weft run -n 2 build/release/examples/payloads
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "weft/weft.h"

constexpr int kSize = 1000;
constexpr weft::Kind kKind = weft::Kind::kEmulated;

struct Block : weft::Chare<Block> {
  // An entry method with a payload: the elements have landed when it runs.
  void store(std::string label, weft::Payload<double> values) {
    total_ = 0;
    for (double value : values.span()) total_ += value;
    label_ = std::move(label);
  }

  std::string report() const { return label_ + ": " + std::to_string(static_cast<int>(total_)); }

  // Runs when a call of halo arrives, before its elements do: says where they land.
  void post_halo(int, weft::ReceiveBuffer<double>& values) { values.into(ghost_.span(), stream_.handle()); }

  // Runs when they are in ghost_.
  void halo(int, weft::Payload<double>) { has_halo_.set(); }

  using PostEntryMethods = weft::PostEntryMethods<weft::Post<&Block::halo, &Block::post_halo>>;

  // Sends this block's face to the other one, and returns what it got from there.
  weft::Task<double> exchange() {
    auto host = weft::DeviceArray<double>::staging(runtime(), kSize, place_);
    std::fill_n(host.data(), kSize, 1.0 + linear_index());
    stream_.copy(face_.buffer(), host.buffer());

    // Starts when the copy that is queued on the stream is done. Nothing here waits for the device.
    weft::Operation sent =
        proxy()[1 - index()].send<&Block::halo>(0, weft::nocopy(face_.span(), stream_.handle()));
    co_await has_halo_;
    co_await sent;  // now face_ may be written to again

    stream_.copy(host.buffer(), ghost_.buffer());
    co_await stream_.done();
    co_return host.data()[kSize - 1];
  }

 private:
  weft::Place place_ = weft::device_of(runtime(), kKind);
  weft::DeviceArray<double> face_{runtime(), kSize, place_};
  weft::DeviceArray<double> ghost_{runtime(), kSize, place_};
  weft::Stream stream_{runtime(), place_};
  weft::Future<> has_halo_{runtime()};
  std::string label_;
  double total_ = 0;
};

weft::Task<> start(weft::Runtime& runtime) {
  auto blocks = weft::Array<Block>::create(runtime, 2);

  std::vector<double> data(kSize, 0.5);
  co_await blocks[1].call<&Block::store>("half of them", weft::nocopy(data));  // in place until it returns
  std::string report = co_await blocks[1].call<&Block::report>();
  std::printf("%s\n", report.c_str());

  std::vector<double> received = co_await blocks.call<&Block::exchange>();
  std::printf("block 0 got %g, block 1 got %g\n", received[0], received[1]);
}

int main(int argc, char** argv) { return weft::run(argc, argv, start); }
