#include "benchmarks/measuring.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace weft::benchmarks {
namespace {

[[noreturn]] void die_of_step(std::string_view argument) {
  die(fmt::format("'{}' is not SIZE:ITERATIONS:WARMUP or SIZE:ITERATIONS:WARMUP:BUFFERS", argument));
}

template <class Number>
Number parse_number(std::string_view text, std::string_view argument) {
  Number number{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    die_of_step(argument);
  }
  return number;
}

Step parse_step(std::string_view argument) {
  std::vector<std::int64_t> numbers;
  for (std::size_t begin = 0; begin <= argument.size();) {
    const std::size_t end = std::min(argument.find(':', begin), argument.size());
    numbers.push_back(parse_number<std::int64_t>(argument.substr(begin, end - begin), argument));
    begin = end + 1;
  }
  if (numbers.size() == 3) numbers.push_back(1);
  if (numbers.size() != 4 || numbers[0] < 0 || numbers[3] < 1) die_of_step(argument);
  return {static_cast<std::size_t>(numbers[0]), numbers[1], numbers[2], numbers[3]};
}

constexpr std::array kBenches{
    std::pair{std::string_view("latency"), Bench::kLatency},
    std::pair{std::string_view("bandwidth"), Bench::kBandwidth},
    std::pair{std::string_view("rate"), Bench::kRate},
    std::pair{std::string_view("allreduce"), Bench::kAllreduce},
    std::pair{std::string_view("busy"), Bench::kBusy},
    std::pair{std::string_view("reduction"), Bench::kReduction},
    std::pair{std::string_view("pgas_latency"), Bench::kOneSided},
    std::pair{std::string_view("pgas_flood"), Bench::kFlood},
    std::pair{std::string_view("pgas_flood_both"), Bench::kFloodBoth},
    std::pair{std::string_view("pgas_fetch_add"), Bench::kFetchAdd},
    std::pair{std::string_view("memspeed"), Bench::kMemspeed},
};

Bench parse_bench(std::string_view name) {
  std::string known;
  for (const auto& [text, bench] : kBenches) {
    if (name == text) return bench;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", text);
  }
  die(fmt::format("'{}' is not a bench: {}", name, known));
}

memory::Kind parse_memory(std::string_view name) {
  if (name == "host") return memory::Kind::kHost;
  if (name == "emulated") return memory::Kind::kEmulated;
  if (name == "cuda") return memory::Kind::kCuda;
  die(fmt::format("'{}' is not a kind of memory: host, emulated or cuda", name));
}

std::array<int, 2> parse_devices(std::string_view text) {
  const std::size_t comma = text.find(',');
  std::array<int, 2> devices{};
  for (std::size_t i : {0U, 1U}) {
    std::string_view part =
        i == 0 ? text.substr(0, comma) : text.substr(std::min(comma, text.size() - 1) + 1);
    auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), devices[i]);
    if (comma == text.npos || error != std::errc() || end != part.data() + part.size() || devices[i] < 0) {
      die(fmt::format("'{}' is not two devices: 0,1", text));
    }
  }
  return devices;
}

}  // namespace

Arguments parse_arguments(int argc, char** argv) {
  if (argc < 3) {
    die("usage: BENCH SIZE:ITERATIONS:WARMUP[:BUFFERS]... [--memory KIND] [--way tag|am|measured|...] "
        "[--devices 0,1]");
  }
  Arguments arguments;
  arguments.bench = parse_bench(argv[1]);
  for (int i = 2; i < argc; ++i) {
    std::string_view argument = argv[i];
    if (argument == "--memory" && i + 1 < argc) {
      arguments.memory = parse_memory(argv[++i]);
    } else if (argument == "--devices" && i + 1 < argc) {
      arguments.devices = parse_devices(argv[++i]);
    } else if (argument == "--way" && i + 1 < argc) {
      arguments.way = argv[++i];
    } else {
      arguments.steps.push_back(parse_step(argument));
    }
  }
  return arguments;
}

void report(Bench bench, const Step& step, double elapsed_s) {
  const auto iterations = static_cast<double>(step.iterations);
  const auto size_bytes = static_cast<double>(step.size_bytes);
  const double messages = iterations * kWindow;
  switch (bench) {
    case Bench::kLatency:
      return report("latency_us", step.size_bytes, elapsed_s / iterations / 2 * 1e6);
    case Bench::kBandwidth:
      return report("bandwidth_GBps", step.size_bytes, messages * size_bytes / elapsed_s / 1e9);
    case Bench::kRate:
      return report("rate_Mps", step.size_bytes, messages / elapsed_s / 1e6);
    case Bench::kAllreduce:
    case Bench::kBusy:
    case Bench::kOneSided:
    case Bench::kFetchAdd:
      return report("latency_us", step.size_bytes, elapsed_s / iterations * 1e6);
    case Bench::kReduction:
      return report("time_s", step.size_bytes, elapsed_s / iterations);
    case Bench::kFlood:
    case Bench::kFloodBoth: {
      const double bytes = iterations * kFloodWindow * size_bytes * (bench == Bench::kFlood ? 1 : 2);
      return report("bandwidth_GBps", step.size_bytes, bytes / elapsed_s / 1e9);
    }
    case Bench::kMemspeed:
      return report("bandwidth_GBps", step.size_bytes, iterations * size_bytes / elapsed_s / 1e9);
  }
}

void report(std::string_view metric, std::size_t size_bytes, double value) {
  std::string line =
      fmt::format("{{\"size_bytes\": {}, \"metric\": \"{}\", \"value\": {}}}\n", size_bytes, metric, value);
  std::fputs(line.c_str(), stdout);
  std::fflush(stdout);
}

void die(std::string_view message) {
  std::fputs(fmt::format("benchmark: {}\n", message).c_str(), stderr);
  std::exit(2);
}

std::uint64_t number_in(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : 0;
}

void parse_numbers(int argc, char** argv, std::string_view usage, std::initializer_list<NamedNumber> numbers,
                   bool* is_aggregated) {
  if (argc % 2 == 0) die(usage);
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const std::string_view word = argv[i + 1];
    if (is_aggregated != nullptr && name == "--way" && (word == "single" || word == "aggregated")) {
      *is_aggregated = word == "aggregated";
      continue;
    }
    const auto* const named = std::find_if(numbers.begin(), numbers.end(),
                                           [name](const NamedNumber& number) { return number.name == name; });
    const std::uint64_t number = number_in(word);
    if (named == numbers.end() || number < named->least || number > named->most) die(usage);
    named->value = number;
  }
}

}  // namespace weft::benchmarks
