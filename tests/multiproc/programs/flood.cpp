// Floods: one PE sends without end what another one is slow to take. Every value is counted and added up on arrival.
//
//     flood WAY NUMBER [LIMIT_MIB [SIZE_BYTES]]
//
// With LIMIT_MIB > 0 each PE limits its address space to that much above what it uses when the job has started. Prints
// "arrived NUMBER", or the error that a call raised, after which the PE goes on.
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "weft/weft.h"

namespace {

using Number = std::uint64_t;
constexpr Number kLastValue = 1000;  // of calls that end the receiver, or the job

std::size_t used_address_space_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t pages = 0;
  file >> pages;
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

class Flooder : public weft::Chare<Flooder> {
  weft::ElementProxy<Flooder> other() { return proxy()[1 - static_cast<int>(index())]; }

 public:
  explicit Flooder(std::uint64_t limit_mib) {
    if (limit_mib == 0) return;
    const rlim_t limit_bytes = used_address_space_bytes() + (limit_mib << 20);
    const rlimit limit{limit_bytes, limit_bytes};
    if (setrlimit(RLIMIT_AS, &limit) != 0) throw std::runtime_error("setrlimit failed");
  }

  void take(Number value) {
    ++taken_;
    sum_ += value;
  }
  void take_bytes(const std::vector<std::uint8_t>& bytes) {
    ++taken_;
    sum_ += bytes.empty() ? 0 : bytes.front();
  }
  Number answer(Number value) {
    take(value);
    return value;
  }
  void die(Number value) {
    if (value == kLastValue) std::raise(SIGKILL);
  }
  // Slow, so that the flood waits inside its call when the job ends.
  void exit(Number value) {
    using Clock = std::chrono::steady_clock;
    const auto until = Clock::now() + std::chrono::microseconds(200);
    while (value <= kLastValue && Clock::now() < until) {
    }
    if (value == kLastValue) runtime().exit(3);
  }
  // Sends one call back, until none is left.
  void bounce(Number left) {
    ++taken_;
    if (left > 0) other().send<&Flooder::bounce>(left - 1);
  }
  std::vector<Number> taken() { return {taken_, sum_}; }

  // --- Floods. Each returns the error that ended it.
  std::string call(Number number) {
    return flood(number, [this](Number i) { other().send<&Flooder::take>(i); });
  }
  std::string call_to_death(Number number) {
    return flood(number, [this](Number i) { other().send<&Flooder::die>(i); });
  }
  std::string call_to_exit(Number number) {
    return flood(number, [this](Number i) { other().send<&Flooder::exit>(i); });
  }
  std::string call_all_to_exit(Number number) {
    return flood(number, [this](Number i) { proxy().send<&Flooder::exit>(i); });
  }
  std::string call_with_bytes(Number number, Number size_bytes) {
    const std::vector<std::uint8_t> bytes(size_bytes, 1);
    return flood(number, [&](Number) { other().send<&Flooder::take_bytes>(bytes); });
  }
  std::string call_all(Number number) {
    return flood(number, [this](Number i) { proxy().send<&Flooder::take>(i); });
  }
  std::string call_own(Number number) {
    return flood(number, [this](Number i) { proxy()[index()].send<&Flooder::take>(i); });
  }
  std::string ask(Number number) {
    return flood(number, [this](Number i) { static_cast<void>(other().call<&Flooder::answer>(i)); });
  }
  weft::Task<std::string> call_awaited(Number number) {
    for (Number i = 0; i < number; ++i) {
      other().send<&Flooder::take>(i);
      co_await weft::room(runtime());
    }
    co_return "";
  }
  weft::Task<std::string> ask_awaited(Number number) {
    for (Number i = 0; i < number; ++i) co_await other().call<&Flooder::answer>(i);
    co_return "";
  }
  // Awaited sends, while the other end waits with its receives until all that fits has been sent.
  weft::Task<std::string> stream(Number number, Number size_bytes, bool awaits) {
    weft::Channel channel(*this, other());
    std::vector<std::uint8_t> bytes(size_bytes, 1);
    try {
      for (Number i = 0; i < number; ++i) {
        if (awaits) {
          co_await channel.send(bytes);
        } else {
          channel.send(bytes).detach();
        }
      }
    } catch (const weft::Error& error) {
      co_return error.what();
    }
    co_return "";
  }
  weft::Task<std::string> receive(Number number, Number size_bytes, double first_after_s) {
    weft::Channel channel(*this, other());
    std::vector<std::uint8_t> bytes(size_bytes);
    if (first_after_s > 0) co_await runtime().sleep(first_after_s);
    for (Number i = 0; i < number; ++i) {
      co_await channel.recv(bytes);
      take(bytes.empty() ? 0 : bytes.front());
    }
    co_return "";
  }

 private:
  template <class Send>
  std::string flood(Number number, Send send) {
    try {
      for (Number i = 0; i < number; ++i) send(i);
    } catch (const weft::Error& error) {
      return error.what();
    }
    return "";
  }

  Number taken_ = 0;
  Number sum_ = 0;
};

using Flooders = weft::Group<Flooder>;

// The end of a flood: its error, or what arrived.
void print(const std::string& error) {
  if (!error.empty()) std::printf("%s\n", error.c_str());
}

template <auto Method, class... Args>
weft::Task<> from_each(Flooders flooders, std::string_view senders, const Args&... arguments) {
  std::vector<weft::Future<std::string>> ends;
  for (char sender : senders) ends.push_back(flooders[sender - '0'].call<Method>(arguments...));
  for (auto& end : ends) print(co_await end);
}

std::string_view senders_of(std::string_view way) {
  return way.ends_with("-back") ? "1" : way.ends_with("-mutual") ? "01" : "0";
}

weft::Task<> flood(weft::Runtime& runtime, std::string way, Number number, Number limit_mib, Number size) {
  auto flooders = Flooders::create(runtime, limit_mib);
  co_await flooders.call<&Flooder::taken>();
  const std::string_view senders = senders_of(way);
  const std::string kind = way.substr(0, way.find('-'));
  if (kind == "calls") {
    co_await from_each<&Flooder::call>(flooders, senders, number);
  } else if (kind == "dies") {
    co_await from_each<&Flooder::call_to_death>(flooders, senders, number);
  } else if (kind == "exits") {
    co_await from_each<&Flooder::call_to_exit>(flooders, senders, number);
  } else if (kind == "allexit") {
    co_await from_each<&Flooder::call_all_to_exit>(flooders, senders, number);
  } else if (kind == "bytes") {
    co_await from_each<&Flooder::call_with_bytes>(flooders, senders, number, size);
  } else if (kind == "all") {
    co_await from_each<&Flooder::call_all>(flooders, senders, number);
  } else if (kind == "own") {
    co_await from_each<&Flooder::call_own>(flooders, senders, number);
  } else if (kind == "asked") {
    co_await from_each<&Flooder::ask>(flooders, senders, number);
  } else if (kind == "awaited") {
    co_await from_each<&Flooder::call_awaited>(flooders, senders, number);
  } else if (kind == "asking") {
    co_await from_each<&Flooder::ask_awaited>(flooders, senders, number);
  } else if (kind == "bounced") {
    for (Number i = 0; i < 1000; ++i) flooders[static_cast<int>(i % 2)].send<&Flooder::bounce>(number / 1000);
  } else if (kind == "stream" || kind == "drops") {
    std::vector<weft::Future<std::string>> ends;
    for (char sender : senders) {
      ends.push_back(flooders[sender - '0'].call<&Flooder::stream>(number, size, kind == "stream"));
      if (kind == "stream") ends.push_back(flooders['1' - sender].call<&Flooder::receive>(number, size, 0.2));
    }
    for (auto& end : ends) print(co_await end);
    if (kind == "drops") co_return;  // without the receives of what was sent
  } else {
    throw std::runtime_error("no such way");
  }
  co_await runtime.quiescence();
  for (int pe = 0; pe < runtime.num_pes(); ++pe) {
    const std::vector<Number> taken = co_await flooders[pe].call<&Flooder::taken>();
    std::printf("PE %d took %llu, sum %llu\n", pe, static_cast<unsigned long long>(taken[0]),
                static_cast<unsigned long long>(taken[1]));
  }
}

Number number_of(const char* text) {
  Number number = 0;
  std::from_chars(text, text + std::strlen(text), number);
  return number;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string way = argv[1];
  const Number number = number_of(argv[2]);
  const Number limit_mib = argc > 3 ? number_of(argv[3]) : 0;
  const Number size = argc > 4 ? number_of(argv[4]) : 8;
  return weft::run(argc, argv, [=](weft::Runtime& runtime) -> weft::Task<> {
    return flood(runtime, way, number, limit_mib, size);
  });
}
