#include "report.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <thread>
#include <utility>

#include "fmt/format.h"

#include "source_version.h"

namespace jacobi3d {
namespace {

std::string json_string(const std::string& text) {
  std::string json = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') json += '\\';
    if (static_cast<unsigned char>(c) >= ' ') json += c;
  }
  return json + '"';
}

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

std::string host_description() {
  utsname system{};
  uname(&system);
  double memory_bytes =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  return fmt::format("{}, {} cores, {:.0f} GiB, {} {} {}", processor(), std::thread::hardware_concurrency(),
                     memory_bytes / (1U << 30U), system.sysname, system.release, system.machine);
}

std::string utc_now() {
  std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[sizeof "2026-01-02T03:04:05Z"];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string record(const Options& options, int num_pes, const Result& result, const char* what,
                   double seconds) {
  const Triple& points = options.points;
  std::string path = fmt::format("{}, {}, {}x{}x{} points, ODF {}, {} iterations", what,
                                 options.placement.host_staging ? "staged" : "direct", points[0], points[1],
                                 points[2], options.odf, options.iterations);
  return fmt::format(
      R"({{"bench": "jacobi3d", "system": "weft", "model": "{}", "language": "cpp", "memory": "{}", )"
      R"("path": {}, "pes": {}, "size_bytes": {}, "metric": "time_s", "unit": "s", )"
      R"("median": {}, "min": {}, "max": {}, "runs": 1, "warmup": {}, )"
      R"("git": {}, "host": {}, "date": {}}})",
      result.model, kind_name(options.placement.memory), json_string(path), num_pes,
      num_points(points) * sizeof(double), seconds, seconds, seconds, options.warmup,
      json_string(kSourceVersion), json_string(host_description()), json_string(utc_now()));
}

}  // namespace

Result make_result(std::string model, double elapsed_s, const std::vector<Times>& pes, int iterations) {
  Result result;
  result.model = std::move(model);
  result.overall_s = elapsed_s / iterations;
  for (const Times& pe : pes) {
    result.compute_s += pe.compute_s / iterations / static_cast<double>(pes.size());
    result.pack_s += pe.pack_s / iterations / static_cast<double>(pes.size());
  }
  result.communication_s = result.overall_s - result.compute_s - result.pack_s;
  return result;
}

namespace {

// " in emulated memory, faces staged through host memory"
std::string describe(const Placement& placement) {
  if (placement.memory == weft::Kind::kHost) return "";
  return fmt::format(" in {} memory, faces {}", kind_name(placement.memory),
                     placement.host_staging ? "staged through host memory" : "sent from there");
}

}  // namespace

std::string describe(const Options& options, const Problem& problem, int num_pes) {
  const auto& [points, blocks] = problem;
  return fmt::format(
      "Jacobi3D in C++: {} x {} x {} points in {} x {} x {} blocks{}, {} PE{}, ODF {}; {} iterations after "
      "{}",
      points[0], points[1], points[2], blocks[0], blocks[1], blocks[2], describe(options.placement), num_pes,
      num_pes == 1 ? "" : "s", options.odf, options.iterations, options.warmup);
}

std::string table(std::span<const Result> results) {
  std::string text = fmt::format("{:<12}{:>10}{:>10}{:>10}{:>15}   {}", "ms/iteration", "overall", "compute",
                                 "pack", "communication", "checksum");
  for (const Result& result : results) {
    text +=
        fmt::format("\n{:<12}{:>10.4f}{:>10.4f}{:>10.4f}{:>15.4f}   {}", result.model, result.overall_s * 1e3,
                    result.compute_s * 1e3, result.pack_s * 1e3, result.communication_s * 1e3,
                    result.checksum ? fmt::format("{:016x}", *result.checksum) : "-");
  }
  for (const Result& result : results) {
    if (!result.verdict.empty()) text += fmt::format("\nverify {}: {}", result.model, result.verdict);
  }
  return text;
}

void write_records(const Options& options, int num_pes, std::span<const Result> results) {
  std::ofstream file(options.json_file);
  for (const Result& result : results) {
    file << record(options, num_pes, result, "overall", result.overall_s) << '\n'
         << record(options, num_pes, result, "compute", result.compute_s) << '\n'
         << record(options, num_pes, result, "pack", result.pack_s) << '\n'
         << record(options, num_pes, result, "communication", result.communication_s) << '\n';
  }
  file.close();
  if (!file) {
    throw UserError(fmt::format("cannot write {}: {}", options.json_file, std::strerror(errno)));
  }
}

}  // namespace jacobi3d
