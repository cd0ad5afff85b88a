#include "heat_report.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <utility>

#include "fmt/format.h"

namespace heat3d {

std::vector<double> two_step_times(std::span<const double> step_ends_s) {
  std::vector<double> times_s;
  for (std::size_t i = 2; i < step_ends_s.size(); ++i) times_s.push_back(step_ends_s[i] - step_ends_s[i - 2]);
  return times_s;
}

std::vector<double> last_ends(std::span<const std::vector<double>> blocks_s) {
  std::vector<double> ends_s = blocks_s.front();
  for (const std::vector<double>& block_s : blocks_s.subspan(1)) {
    for (std::size_t i = 0; i < ends_s.size(); ++i) ends_s[i] = std::max(ends_s[i], block_s.at(i));
  }
  return ends_s;
}

double quantile(std::vector<double> times, double part) {
  std::sort(times.begin(), times.end());
  const double place = part * static_cast<double>(times.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, times.size() - 1);
  return std::lerp(times[below], times[above], place - static_cast<double>(below));
}

std::string describe(const Options& options, const jacobi3d::Problem& problem, int num_pes) {
  const auto& [points, blocks] = problem;
  return fmt::format(
      "heat conduction in 3D: {} x {} x {} points in {} x {} x {} blocks in {} memory, {} PE{}, ODF {}, "
      "exchange {}; {} steps after {}",
      points[0], points[1], points[2], blocks[0], blocks[1], blocks[2],
      weft::memory::kind_name(options.placement.memory), num_pes, num_pes == 1 ? "" : "s", options.odf,
      name_of(options.exchange), options.steps, options.warmup);
}

std::string table(const Options& options, const Timing& timing) {
  std::vector<double> all;
  for (const std::vector<double>& pe : timing.windows_s) all.insert(all.end(), pe.begin(), pe.end());
  std::string text = fmt::format(
      "us per two steps: median {:.3f}, 5 % to 95 % of windows {:.3f} to {:.3f}, least {:.3f}, most {:.3f}",
      1e6 * quantile(all, 0.5), 1e6 * quantile(all, 0.05), 1e6 * quantile(all, 0.95),
      1e6 * quantile(all, 0.0), 1e6 * quantile(all, 1.0));
  if (options.placement.memory == weft::Kind::kHost) {
    text +=
        fmt::format("\nus per step: {:.3f}, of these {:.3f} in the kernel and {:.3f} packing and unpacking",
                    1e6 * timing.step_s, 1e6 * timing.kernels.compute_s, 1e6 * timing.kernels.pack_s);
  }
  return text;
}

void write_json(const Options& options, int num_pes, const Timing& timing) {
  std::string windows;
  for (const std::vector<double>& pe : timing.windows_s) {
    std::string times;
    for (double time_s : pe) times += fmt::format("{}{:.3f}", times.empty() ? "" : ", ", 1e6 * time_s);
    windows += fmt::format("{}[{}]", windows.empty() ? "" : ", ", times);
  }
  const Triple& points = options.points;
  std::ofstream file(options.json_file);
  file << fmt::format(
      R"({{"program": "heat3d", "exchange": "{}", "memory": "{}", "pes": {}, "odf": {}, )"
      R"("points": [{}, {}, {}], "steps": {}, "warmup": {}, "step_us": {:.3f}, "compute_us": {:.3f}, )"
      R"("pack_us": {:.3f}, "two_steps_us": [{}]}})",
      name_of(options.exchange), weft::memory::kind_name(options.placement.memory), num_pes, options.odf,
      points[0], points[1], points[2], options.steps, options.warmup, 1e6 * timing.step_s,
      1e6 * timing.kernels.compute_s, 1e6 * timing.kernels.pack_s, windows);
  file << '\n';
  file.close();
  if (!file) {
    throw miniapps::UserError(fmt::format("cannot write {}: {}", options.json_file, std::strerror(errno)));
  }
}

}  // namespace heat3d
