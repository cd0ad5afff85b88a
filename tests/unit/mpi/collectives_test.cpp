// The coroutines of collectives on 1 to 9 PEs, in one process.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "weft/mpi/mpi.h"

#include "models/mpi/collective/collective_request.h"
#include "models/mpi/collective/data_movement.h"
#include "models/mpi/collective/reductions.h"
#include "models/mpi/datatype/describing/constructors.h"
#include "models/mpi/datatype/predefined.h"
#include "tests/unit/mpi/mpi_job.h"

namespace weft::mpi {
namespace {

template <class T>
DataView view_of_values(std::vector<T>& values, std::size_t first, std::size_t count) {
  return DataView::of_bytes(values.data() + first, count * sizeof(T));
}
template <class T>
DataView view_of_values(std::vector<T>& values) {
  return view_of_values(values, 0, values.size());
}

// The error class of a collective.
Task<> keep_error(Task<> work, int& error) {
  try {
    co_await std::move(work);
  } catch (const TransferFailed& failure) {
    error = failure.error_class();
  }
}

class Collectives : public ::testing::TestWithParam<int> {
 protected:
  Collectives() : job_(GetParam()), all_(std::make_shared<Members>(static_cast<std::size_t>(GetParam()))) {
    std::iota(all_->begin(), all_->end(), 0);
  }

  int size() const { return job_.num_pes(); }
  CollectiveContext context(int pe) { return {job_.ranks(pe), 8, next_tag_, all_, pe}; }

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

  Reduction reduction(MPI_Datatype type, MPI_Op operation, MPI_Count count) {
    return {Ref<Datatype>(*types_.find(type)), Ref<ReductionOperator>(*operations_.find(operation)), count};
  }

  testing::MpiJob job_;
  std::shared_ptr<Members> all_;
  int next_tag_ = 0;
  PredefinedTypes types_;
  PredefinedOperators operations_;
};

TEST_P(Collectives, BroadcastGivesTheRootsData) {
  for (int root = 0; root < size(); ++root) {
    std::vector<std::vector<int>> data(static_cast<std::size_t>(size()), std::vector<int>(3000, -1));
    std::iota(data[static_cast<std::size_t>(root)].begin(), data[static_cast<std::size_t>(root)].end(), root);
    run([&](int pe) {
      return broadcast(context(pe), root, view_of_values(data[static_cast<std::size_t>(pe)]));
    });
    for (const std::vector<int>& one : data) EXPECT_EQ(one, data[static_cast<std::size_t>(root)]);
  }
}

TEST_P(Collectives, GatheredDataIsInTheOrderOfRanks) {
  const auto num = static_cast<std::size_t>(size());
  std::vector<std::vector<int>> mine;
  std::vector<std::vector<int>> all(num, std::vector<int>(num, -1));
  std::vector<int> expected(num);
  std::iota(expected.begin(), expected.end(), 40);
  for (const int value : expected) mine.push_back({value});
  run([&](int pe) {
    const auto i = static_cast<std::size_t>(pe);
    Views parts;
    for (std::size_t k = 0; k < num; ++k) parts.push_back(view_of_values(all[i], k, 1));
    return allgather(context(pe), OwnView{view_of_values(mine[i]), false}, parts);
  });
  for (const std::vector<int>& one : all) EXPECT_EQ(one, expected);
}

TEST_P(Collectives, ExchangedPartsReachTheirProcess) {
  const auto num = static_cast<std::size_t>(size());
  for (const bool in_place : {false, true}) {
    std::vector<std::vector<int>> out(num, std::vector<int>(num));
    std::vector<std::vector<int>> in(num, std::vector<int>(num, -1));
    for (std::size_t i = 0; i < num; ++i)
      for (std::size_t k = 0; k < num; ++k) out[i][k] = static_cast<int>(i * 100 + k);
    run([&](int pe) {
      const auto i = static_cast<std::size_t>(pe);
      Views sent;
      Views received;
      for (std::size_t k = 0; k < num; ++k) {
        sent.push_back(view_of_values(out[i], k, 1));
        received.push_back(view_of_values(in[i], k, 1));
      }
      return in_place ? alltoall_in_place(context(pe), sent) : alltoall(context(pe), sent, received);
    });
    const auto& result = in_place ? out : in;
    for (std::size_t i = 0; i < num; ++i)
      for (std::size_t k = 0; k < num; ++k) EXPECT_EQ(result[i][k], static_cast<int>(k * 100 + i));
  }
}

// Both forms of each collective: parts of few bytes are passed on in rounds.
TEST_P(Collectives, PartsOfAllSizesReachTheirProcess) {
  const auto num = static_cast<std::size_t>(size());
  for (const std::size_t count : {0U, 1U, 7U, 64U, 65U, 256U, 257U, 3000U}) {
    const auto value = [&](std::size_t from, std::size_t to, std::size_t i) {
      return static_cast<int>(from * 1'000'000 + to * 10'000 + i);
    };
    // row(k, i): what process k gives to or gets from process i.
    using Matrix = std::vector<std::vector<int>>;
    const auto row = [&](Matrix& matrix, std::size_t process) {
      Views parts;
      for (std::size_t k = 0; k < num; ++k)
        parts.push_back(view_of_values(matrix[process], k * count, count));
      return parts;
    };
    Matrix out(num, std::vector<int>(num * count));
    Matrix expected = out;
    for (std::size_t from = 0; from < num; ++from) {
      for (std::size_t to = 0; to < num; ++to) {
        for (std::size_t i = 0; i < count; ++i) {
          out[from][to * count + i] = value(from, to, i);
          expected[to][from * count + i] = value(from, to, i);
        }
      }
    }
    const auto index = [](int pe) { return static_cast<std::size_t>(pe); };
    Matrix in(num, std::vector<int>(num * count, -1));
    run([&](int pe) { return alltoall_equal(context(pe), row(out, index(pe)), row(in, index(pe))); });
    EXPECT_EQ(in, expected) << count;
    Matrix both = out;
    run([&](int pe) { return alltoall_equal_in_place(context(pe), row(both, index(pe))); });
    EXPECT_EQ(both, expected) << count;
    for (int root = 0; root < size(); ++root) {
      Matrix gathered(num, std::vector<int>(num * count, -1));
      Matrix scattered(num, std::vector<int>(count, -1));
      const auto part = [&](Matrix& matrix, int pe) {
        return view_of_values(matrix[index(pe)], index(root) * count, count);
      };
      run([&](int pe) {
        const Views parts = pe == root ? row(gathered, index(pe)) : Views();
        return gather_equal(context(pe), root, OwnView{part(out, pe), false}, parts);
      });
      EXPECT_EQ(gathered[index(root)], expected[index(root)]) << count << " to " << root;
      run([&](int pe) {
        const Views parts = pe == root ? row(out, index(pe)) : Views();
        return scatter_equal(context(pe), root, parts, OwnView{view_of_values(scattered[index(pe)]), false});
      });
      for (std::size_t pe = 0; pe < num; ++pe) {
        const auto first = out[index(root)].begin() + static_cast<std::ptrdiff_t>(pe * count);
        EXPECT_EQ(scattered[pe], std::vector<int>(first, first + static_cast<std::ptrdiff_t>(count)))
            << count << " from " << root;
      }
    }
  }
}

TEST_P(Collectives, PartsOfDifferentSizesAreGatheredByAll) {
  const auto num = static_cast<std::size_t>(size());
  for (const std::size_t most : {3U, 40U, 9000U}) {
    for (const bool in_place : {false, true}) {
      std::vector<std::size_t> begin(num + 1);
      for (std::size_t i = 0; i < num; ++i) begin[i + 1] = begin[i] + (i * 7 + 2) % most;
      std::vector<int> expected(begin.back());
      std::iota(expected.begin(), expected.end(), 5);
      std::vector<std::vector<int>> all(num, std::vector<int>(begin.back(), -1));
      run([&](int pe) {
        const auto i = static_cast<std::size_t>(pe);
        const std::size_t count = begin[i + 1] - begin[i];
        Views parts;
        for (std::size_t k = 0; k < num; ++k)
          parts.push_back(view_of_values(all[i], begin[k], begin[k + 1] - begin[k]));
        if (in_place)
          std::copy_n(expected.begin() + static_cast<std::ptrdiff_t>(begin[i]), count,
                      all[i].begin() + static_cast<std::ptrdiff_t>(begin[i]));
        return allgather(context(pe), OwnView{view_of_values(expected, begin[i], count), in_place}, parts);
      });
      for (const std::vector<int>& one : all) EXPECT_EQ(one, expected) << most;
    }
  }
}

// The standard calls this an error of the program. All that wait for the bytes are told.
TEST_P(Collectives, APartOfAnotherSizeIsAnError) {
  if (size() < 3) return;  // two processes exchange one message, which may be shorter
  const auto num = static_cast<std::size_t>(size());
  std::vector<std::vector<int>> all(num, std::vector<int>(num, -1));
  std::vector<int> mine(2, 1);
  std::vector<int> errors(num, MPI_SUCCESS);
  run([&](int pe) -> Task<> {
    const auto i = static_cast<std::size_t>(pe);
    Views parts;
    for (std::size_t k = 0; k < num; ++k) parts.push_back(view_of_values(all[i], k, 1));
    const DataView own = view_of_values(mine, 0, pe == 1 ? 0 : 1);
    co_await keep_error(allgather(context(pe), OwnView{own, false}, parts), errors[i]);
  });
  EXPECT_EQ(errors, std::vector<int>(num, MPI_ERR_TRUNCATE));
}

TEST_P(Collectives, AProcessThatCannotSendFailsAndAllReturn) {
  if (size() == 1) return;
  const auto num = static_cast<std::size_t>(size());
  std::vector<std::vector<int>> data(num, std::vector<int>(20000, -1));  // no block of the engine
  std::vector<int> errors(num, MPI_SUCCESS);
  run([&](int pe) {
    const auto i = static_cast<std::size_t>(pe);
    const DataView view = pe == 0 ? testing::TooLargeToPack::view() : view_of_values(data[i]);
    return keep_error(broadcast(context(pe), 0, view), errors[i]);
  });
  EXPECT_EQ(errors[0], MPI_ERR_NO_MEM);
  EXPECT_EQ(std::ranges::count(errors, MPI_ERR_TRUNCATE), size() - 1);
}

// A persistent operation has one tag. The root starts it many times before the others do.
TEST_P(Collectives, StartsOfAPersistentOperationDoNotMix) {
  run([&](int pe) -> Task<> {
    const auto starts = std::make_shared<std::uint32_t>(0);
    const CollectiveContext persistent(job_.ranks(pe), 8, next_tag_, all_, pe, nullptr, nullptr, nullptr,
                                       starts);
    for (int value = 1; value <= 40; ++value) {
      ++*starts;
      std::vector<int> data(1, pe == 0 ? value : -1);
      co_await broadcast(persistent, 0, view_of_values(data));
      EXPECT_EQ(data[0], value) << pe;
    }
  });
}

// An operation that ends with its frame, as the end of a job does, leaves no receive into its memory.
TEST_P(Collectives, TransfersThatAreNotAwaitedAreCancelled) {
  if (size() == 1) return;
  std::vector<int> data(4);
  {
    Transfers transfers(context(0));
    transfers.receive(1, view_of_values(data));
    EXPECT_EQ(job_.ranks(0).num_posted(), 1U);
  }
  EXPECT_EQ(job_.ranks(0).num_posted(), 0U);
}

// What communicators agree on by: a process with an error does not leave the others waiting.
TEST_P(Collectives, FewBytesOfAnotherSizeAreAnErrorAndAllReturn) {
  if (size() == 1) return;
  const auto num = static_cast<std::size_t>(size());
  std::vector<std::vector<std::byte>> bytes(num, std::vector<std::byte>(8));
  bytes[1].resize(4);
  std::vector<int> errors(num, MPI_SUCCESS);
  const auto collected = [](CollectiveContext own, std::span<const std::byte> mine) -> Task<> {
    co_await allgather_bytes(std::move(own), mine);
  };
  run([&](int pe) {
    const auto i = static_cast<std::size_t>(pe);
    return keep_error(collected(context(pe), bytes[i]), errors[i]);
  });
  EXPECT_EQ(errors, std::vector<int>(num, MPI_ERR_TRUNCATE));
  errors.assign(num, MPI_SUCCESS);
  run([&](int pe) {
    const auto i = static_cast<std::size_t>(pe);
    return keep_error(broadcast_bytes(context(pe), 2 % size(), bytes[i]), errors[i]);
  });
  EXPECT_NE(std::ranges::count(errors, MPI_ERR_TRUNCATE), 0);
}

// Small ones go by recursive doubling, large ones by parts around a ring.
TEST_P(Collectives, AllReduceCombinesTheDataOfAll) {
  for (const std::size_t count : {1U, 100U, 20011U}) {
    std::vector<std::vector<double>> in(static_cast<std::size_t>(size()), std::vector<double>(count));
    std::vector<std::vector<double>> out = in;
    std::vector<double> expected(count, 0.0);
    for (std::size_t i = 0; i < in.size(); ++i) {
      for (std::size_t k = 0; k < count; ++k) {
        in[i][k] = static_cast<double>(i + k);
        expected[k] += in[i][k];
      }
    }
    const Reduction what = reduction(MPI_DOUBLE, MPI_SUM, static_cast<MPI_Count>(count));
    run([&](int pe) {
      const auto i = static_cast<std::size_t>(pe);
      return allreduce(context(pe), what, view_of_values(in[i]), view_of_values(out[i]));
    });
    for (const std::vector<double>& one : out) EXPECT_EQ(one, expected);
  }
}

TEST_P(Collectives, ReduceScatterGivesEachItsPart) {
  for (const MPI_Count scale : {1, 9000}) {  // by a tree, and around a ring
    const auto num = static_cast<std::size_t>(size());
    std::vector<MPI_Count> counts;
    MPI_Count total = 0;
    for (std::size_t i = 0; i < num; ++i) {
      counts.push_back(static_cast<MPI_Count>(i % 3) * scale);
      total += counts.back();
    }
    std::vector<std::vector<int>> in(num, std::vector<int>(static_cast<std::size_t>(total)));
    std::vector<std::vector<int>> out(num);
    for (std::size_t i = 0; i < num; ++i) {
      out[i].resize(static_cast<std::size_t>(counts[i]));
      for (std::size_t k = 0; k < in[i].size(); ++k) in[i][k] = static_cast<int>(i + 1) * static_cast<int>(k);
    }
    const Reduction what = reduction(MPI_INT, MPI_SUM, total);
    run([&](int pe) {
      const auto i = static_cast<std::size_t>(pe);
      return reduce_and_scatter(context(pe), what, counts, view_of_values(in[i]), view_of_values(out[i]));
    });
    const int factor = size() * (size() + 1) / 2;
    int k = 0;
    for (const std::vector<int>& one : out)
      for (const int value : one) ASSERT_EQ(value, factor * k++);
  }
}

// Strings of one letter for each rank would be joined in order; numbers in base 10 are as good.
void append_digits(void* left, void* right, MPI_Count* count, MPI_Datatype*) {
  auto* const l = static_cast<long*>(left);
  auto* const r = static_cast<long*>(right);
  for (MPI_Count i = 0; i < *count; ++i) {
    long shift = 10;
    while (shift <= r[i]) shift *= 10;
    r[i] += l[i] * shift;
  }
}

TEST_P(Collectives, OperandsAreInTheOrderOfRanks) {
  const auto num = static_cast<std::size_t>(size());
  Reduction what = reduction(MPI_LONG, MPI_SUM, 1);
  what.operation = Ref<ReductionOperator>::adopt(new ReductionOperator(&append_digits, false));
  std::vector<std::vector<long>> in;
  std::vector<long> up_to(num);  // 1, 12, 123, ...
  for (std::size_t i = 0; i < num; ++i) {
    in.push_back({static_cast<long>(i + 1)});
    up_to[i] = (i == 0 ? 0 : up_to[i - 1] * 10) + static_cast<long>(i + 1);
  }
  for (int root = 0; root < size(); ++root) {
    std::vector<long> out(1, -1);
    run([&](int pe) {
      return reduce(context(pe), root, what, view_of_values(in[static_cast<std::size_t>(pe)]),
                    view_of_values(out));
    });
    EXPECT_EQ(out[0], up_to.back());
  }
  for (const bool exclusive : {false, true}) {
    std::vector<std::vector<long>> out(num, std::vector<long>(1, -1));
    run([&](int pe) {
      const auto i = static_cast<std::size_t>(pe);
      return scan(context(pe), what, exclusive, view_of_values(in[i]), view_of_values(out[i]));
    });
    for (std::size_t i = 0; i < num; ++i) {
      if (exclusive) {
        EXPECT_EQ(out[i][0], i == 0 ? -1 : up_to[i - 1]);
      } else {
        EXPECT_EQ(out[i][0], up_to[i]);
      }
    }
  }
  std::vector<std::vector<long>> out(num, std::vector<long>(1, -1));
  run([&](int pe) {
    const auto i = static_cast<std::size_t>(pe);
    return allreduce(context(pe), what, view_of_values(in[i]), view_of_values(out[i]));
  });
  for (const std::vector<long>& one : out) EXPECT_EQ(one[0], up_to.back());
}

INSTANTIATE_TEST_SUITE_P(Sizes, Collectives, ::testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9));

// Elements with gaps, and a negative extent.
// A program's operator in C++ may throw; the PE goes on.
TEST(CollectiveRequest, EndsWithAnErrorIfAnythingIsThrown) {
  testing::MpiJob job(1);
  const auto body = [](Outcome*) -> Task<> {
    throw 7;
    co_return;
  };
  const auto request = Request::make<CollectiveRequest>(job.runtime(0), body);
  request->start();
  ASSERT_EQ(job.run_until([&] { return request->is_complete(); }), "");
  EXPECT_EQ(request->outcome().error, MPI_ERR_INTERN);
}

TEST(ScratchElements, HaveRoomForTheirElements) {
  PredefinedTypes types;
  Ref<Datatype> column;
  Ref<Datatype> backwards;
  ASSERT_TRUE(make_vector({3, 1, 4}, *types.find(MPI_INT), CallForm::kSmall, &column).ok());
  ASSERT_TRUE(make_resized(0, -4, *types.find(MPI_INT), CallForm::kSmall, &backwards).ok());
  for (const Ref<Datatype>& type : {column, backwards}) {
    const ScratchElements elements(type, 5);
    const DataView view = elements.view();
    std::vector<std::byte> in(view.size_bytes);
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<std::byte>(i);
    view.unpack(in.data(), in.size());
    std::vector<std::byte> back(view.size_bytes);
    view.pack(back.data());
    EXPECT_EQ(back, in);
  }
}

}  // namespace
}  // namespace weft::mpi
