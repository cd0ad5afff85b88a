// Rows and columns of a grid: sections with calls and reductions of their own, also of several collections.
//
//   weft run -n 2 build/release/examples/sections
#include <cstdio>
#include <vector>

#include "weft/weft.h"

constexpr int kSize = 4;

struct Cell : weft::Chare<Cell> {
  void scale(int factor) { value *= factor; }
  int get() const { return value; }
  void add_up(weft::Section<Cell> section, weft::Future<int> done) {
    contribute(value, weft::Reducer::kSum, weft::target_of(done), section);
  }
  void add_up_all(weft::CombinedSection<Cell> section, weft::Future<int> done) {
    contribute(value, weft::Reducer::kSum, weft::target_of(done), section);
  }

  int value = kSize * index()[0] + index()[1];
};

void print(const char* what, const std::vector<int>& values) {
  std::printf("%s:", what);
  for (const int value : values) std::printf(" %d", value);
  std::printf("\n");
}

weft::Task<> start(weft::Runtime& runtime) {
  using weft::Range;
  const auto grid = weft::Array<Cell>::create(runtime, {kSize, kSize});
  const auto row = grid.slice({Range::one(1), Range::all()});
  co_await row.call<&Cell::scale>(10);
  print("row 1", co_await row.call<&Cell::get>());
  const auto column = grid.slice({Range{kSize - 1, kSize, -1}, Range::one(3)});
  print("column 3 from below", co_await column.call<&Cell::get>());
  const auto diagonal = grid.section_if([](const weft::Index& index) { return index[0] == index[1]; });
  print("diagonal", co_await diagonal.call<&Cell::get>());

  std::vector<weft::Future<int>> sums;
  for (int i = 0; i < kSize; ++i) {
    const auto members = grid.slice({Range::one(i), Range::all()});
    members.send<&Cell::add_up>(members, sums.emplace_back(runtime));
  }
  std::vector<int> values;
  for (const auto& sum : sums) values.push_back(co_await sum);
  print("sums of the rows", values);

  for (const auto& half : diagonal.split(2)) {
    weft::Future<int> done(runtime);
    half.send<&Cell::add_up>(half, done);
    std::printf("sum of a half of the diagonal: %d\n", co_await done);
  }

  const auto border = weft::Array<Cell>::create(runtime, {1, kSize});
  const weft::CombinedSection all(diagonal, border);
  weft::Future<int> done(runtime);
  all.send<&Cell::add_up_all>(all, done);
  std::printf("sum of the diagonal and the border: %d\n", co_await done);
}

int main(int argc, char** argv) { return weft::run(argc, argv, start); }
