// The times of windows of two steps, for people and for programs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "decomposition.h"
#include "heat_options.h"

namespace heat3d {

// Seconds between the ends of steps i and i + 2, for each i.
std::vector<double> two_step_times(std::span<const double> step_ends_s);

// When the last of several blocks ended each step. REQUIRES: at least one block, and the same number of steps for all.
std::vector<double> last_ends(std::span<const std::vector<double>> blocks_s);

// By linear interpolation between the sorted times. REQUIRES: there are times; 0 <= part <= 1.
double quantile(std::vector<double> times, double part);

struct Timing {
  std::vector<std::vector<double>> windows_s;  // by PE
  jacobi3d::Times kernels;                     // of a step, the mean over PEs
  double step_s = 0.0;
};

std::string describe(const Options& options, const jacobi3d::Problem& problem, int num_pes);
std::string table(const Options& options, const Timing& timing);

// Throws miniapps::UserError naming the file.
void write_json(const Options& options, int num_pes, const Timing& timing);

}  // namespace heat3d
