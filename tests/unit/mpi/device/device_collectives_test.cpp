// Collectives whose processes have their data in device memory, in host memory, or some in the one and some in the other.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "weft/mpi/mpi.h"

#include "models/mpi/collective/data_movement.h"
#include "models/mpi/collective/reductions.h"
#include "tests/support/busy_stream.h"
#include "tests/unit/mpi/device/device_view.h"
#include "tests/unit/mpi/mpi_job.h"

namespace weft::mpi {
namespace {

using testing::TestMemory;

enum class Mix : std::uint8_t { kDevice, kEvenRanks, kOddRanks };

// The number of PEs and which of them have device memory.
class DeviceCollectives : public ::testing::TestWithParam<std::tuple<int, Mix>> {
 protected:
  DeviceCollectives()
      : job_(std::get<0>(GetParam())), all_(std::make_shared<Members>(static_cast<std::size_t>(size()))) {
    std::iota(all_->begin(), all_->end(), 0);
  }

  int size() const { return job_.num_pes(); }
  memory::Place place(int pe) const {
    const Mix mix = std::get<1>(GetParam());
    return mix == Mix::kDevice || pe % 2 == (mix == Mix::kEvenRanks ? 0 : 1) ? kDevicePlace : kHostPlace;
  }
  CollectiveContext context(int pe, memory::StreamHandle stream = nullptr) {
    return {job_.ranks(pe), 8, next_tag_, all_, pe, nullptr, stream};
  }

  // Numbers in the memory of each process: those of value(pe, i).
  struct Numbers {
    std::vector<TestMemory> memories;
    std::size_t count = 0;

    DataView view(int pe) { return view_of_memory(memories[static_cast<std::size_t>(pe)]); }
    DataView part(int pe, std::size_t first, std::size_t num) {
      DataView made = view(pe);
      made.data += first * sizeof(int);
      made.size_bytes = num * sizeof(int);
      return made;
    }
    // Parts of `num` numbers.
    Views parts(int pe, std::size_t num) {
      Views made;
      for (std::size_t first = 0; first < count; first += num) made.push_back(part(pe, first, num));
      return made;
    }
  };
  template <class Value>
  Numbers numbers(std::size_t count, const Value& value) {
    Numbers made;
    made.count = count;
    for (int pe = 0; pe < size(); ++pe) {
      TestMemory memory(job_.memory(pe), place(pe), count * sizeof(int));
      for (std::size_t i = 0; i < count; ++i) {
        const int number = value(pe, static_cast<int>(i));
        std::memcpy(testing::view(job_.memory(pe), memory.buffer()) + i * sizeof number, &number,
                    sizeof number);
      }
      made.memories.push_back(std::move(memory));
    }
    return made;
  }
  Numbers no_numbers(std::size_t count) {
    return numbers(count, [](int, int) { return -1; });
  }
  template <class Value>
  void expect(Numbers& numbers, const Value& value) {
    for (int pe = 0; pe < size(); ++pe) {
      const std::vector<std::uint8_t> bytes = numbers.memories[static_cast<std::size_t>(pe)].now();
      for (std::size_t i = 0; i < numbers.count; ++i) {
        int number = 0;
        std::memcpy(&number, bytes.data() + i * sizeof number, sizeof number);
        ASSERT_EQ(number, value(pe, static_cast<int>(i))) << "number " << i << " of PE " << pe;
      }
    }
  }

  // Runs `body(pe)`, a coroutine, on each PE at the same time.
  template <class Body>
  void run(const Body& body) {
    int left = size();
    const auto counted = [](Task<> task, int& count) -> Task<> {
      co_await std::move(task);
      --count;
    };
    for (int pe = 0; pe < size(); ++pe) job_.runtime(pe).spawn(counted(body(pe), left), "a rank");
    ASSERT_EQ(job_.run_until([&] { return left == 0; }), "");
    ++next_tag_;
  }

  Reduction reduction(MPI_Op operation, std::size_t count) {
    return {Ref<Datatype>(*types_.find(MPI_INT)), Ref<ReductionOperator>(*operations_.find(operation)),
            static_cast<MPI_Count>(count)};
  }

  testing::MpiJob job_;
  std::shared_ptr<Members> all_;
  int next_tag_ = 0;
  PredefinedTypes types_;
  PredefinedOperators operations_;
};

int sum_of_ranks(int last) { return last * (last + 1) / 2; }

TEST_P(DeviceCollectives, DataIsMoved) {
  const int last = size() - 1;
  for (const std::size_t count : {1U, 3000U, 40'000U}) {
    Numbers data = numbers(count, [&](int pe, int i) { return pe == last ? i : -1; });
    run([&](int pe) { return broadcast(context(pe), last, data.view(pe)); });
    expect(data, [](int, int i) { return i; });

    const auto num = static_cast<int>(count);
    Numbers mine = numbers(count, [](int pe, int i) { return pe * 100 + i; });
    Numbers all = no_numbers(count * static_cast<std::size_t>(size()));
    run([&](int pe) {
      return gather(context(pe), last, OwnView{mine.view(pe), false},
                    pe == last ? all.parts(pe, count) : Views());
    });
    expect(all, [&](int pe, int i) { return pe == last ? i / num * 100 + i % num : -1; });
    run([&](int pe) { return allgather(context(pe), OwnView{mine.view(pe), false}, all.parts(pe, count)); });
    expect(all, [&](int, int i) { return i / num * 100 + i % num; });

    Numbers parts = no_numbers(count);
    run([&](int pe) {
      return scatter(context(pe), last, pe == last ? all.parts(pe, count) : Views(),
                     OwnView{parts.view(pe), false});
    });
    expect(parts, [](int pe, int i) { return pe * 100 + i; });
  }
}

TEST_P(DeviceCollectives, PartsAreExchanged) {
  for (const std::size_t count : {2U, 5000U}) {
    const auto num = static_cast<int>(count);
    const auto whole = count * static_cast<std::size_t>(size());
    const auto sent = [&](int pe, int i) { return pe * 1000 + i / num * 10; };
    const auto received = [&](int pe, int i) { return i / num * 1000 + pe * 10; };
    Numbers out = numbers(whole, sent);
    Numbers in = no_numbers(whole);
    run([&](int pe) { return alltoall(context(pe), out.parts(pe, count), in.parts(pe, count)); });
    expect(in, received);
    run([&](int pe) { return alltoall_in_place(context(pe), out.parts(pe, count)); });
    expect(out, received);
  }
}

TEST_P(DeviceCollectives, DataIsCombined) {
  const int last = size() - 1;
  for (const std::size_t count : {1U, 20'011U}) {
    const auto value = [](int pe, int i) { return pe + i; };
    const auto combined = [&](int, int i) { return sum_of_ranks(last) + size() * i; };
    Numbers in = numbers(count, value);
    Numbers out = no_numbers(count);
    run([&](int pe) { return allreduce(context(pe), reduction(MPI_SUM, count), in.view(pe), out.view(pe)); });
    expect(out, combined);
    run([&](int pe) { return allreduce(context(pe), reduction(MPI_SUM, count), in.view(pe), in.view(pe)); });
    expect(in, combined);

    in = numbers(count, value);
    out = no_numbers(count);
    run([&](int pe) {
      return reduce(context(pe), last, reduction(MPI_SUM, count), in.view(pe),
                    pe == last ? out.view(pe) : DataView());
    });
    expect(out, [&](int pe, int i) { return pe == last ? combined(pe, i) : -1; });
    run([&](int pe) {
      return scan(context(pe), reduction(MPI_SUM, count), false, in.view(pe), out.view(pe));
    });
    expect(out, [&](int pe, int i) { return sum_of_ranks(pe) + (pe + 1) * i; });

    const auto whole = count * static_cast<std::size_t>(size());
    Numbers long_in = numbers(whole, value);
    run([&](int pe) {
      return reduce_and_scatter(
          context(pe), reduction(MPI_SUM, whole),
          std::vector<MPI_Count>(static_cast<std::size_t>(size()), static_cast<MPI_Count>(count)),
          long_in.view(pe), out.view(pe));
    });
    expect(out, [&](int pe, int i) { return combined(pe, pe * static_cast<int>(count) + i); });
  }
}

// The context's stream is that of all its transfers in device memory.
TEST_P(DeviceCollectives, DataIsTakenAfterTheWorkOfTheStream) {
  bool may_end = false;
  Numbers in = numbers(100, [](int, int) { return 0; });
  Numbers out = no_numbers(100);
  const auto stream_of = [&](int pe) -> memory::StreamHandle {
    if (place(pe).is_host()) return nullptr;
    std::uint8_t* const bytes =
        testing::view(job_.memory(pe), in.memories[static_cast<std::size_t>(pe)].buffer());
    return testing::stream_with(testing::emulated(job_.memory(pe)), 0, [&may_end, bytes]() -> base::Status {
      if (!may_end) return base::Status::pending();
      std::memset(bytes, 1, 100 * sizeof(int));
      return {};
    });
  };
  int turns = 0;
  const auto ends_later = [&]() -> Task<> {
    while (++turns < 100) co_await runtime::yield_now(job_.runtime(0));
    may_end = true;
  };
  job_.runtime(0).spawn(ends_later(), "the device");
  run([&](int pe) {
    return allreduce(context(pe, stream_of(pe)), reduction(MPI_SUM, 100), in.view(pe), out.view(pe));
  });
  int devices = 0;
  for (int pe = 0; pe < size(); ++pe) devices += place(pe).is_host() ? 0 : 1;
  expect(out, [&](int, int) { return devices * 0x01010101; });
}

INSTANTIATE_TEST_SUITE_P(Mixes, DeviceCollectives,
                         ::testing::Combine(::testing::Values(1, 2, 3, 5),
                                            ::testing::Values(Mix::kDevice, Mix::kEvenRanks,
                                                              Mix::kOddRanks)));

}  // namespace
}  // namespace weft::mpi
