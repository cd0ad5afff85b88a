#include "weft/chare/combined_section.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "weft/weft.h"

#include "models/chare/elements/parts.h"
#include "models/chare/sections/section_state.h"
#include "tests/support/errors.h"
#include "tests/support/in_process_job.h"
#include "tests/unit/chare/chare_handler.h"
#include "tests/unit/checkpoint/files.h"

namespace weft::chare {
namespace {

using test_support::error_of;
using test_support::says;

// Its name tells the collection: 100 * base + index.
struct Node : Chare<Node> {
  explicit Node(int base) : name(100 * base + static_cast<int>(linear_index())) {}
  explicit Node(Moved) {}
  void pup(Pup& p) { p | name | calls | results; }

  int get_name() { return name; }
  Task<int> get_name_later() {
    for (int i = 0; i < name % 5; ++i) co_await yield_now(runtime());
    co_return name;
  }
  void hear() { ++calls; }
  int count_calls() { return calls; }
  int throw_from(int least) {
    if (name % 100 >= least) throw std::domain_error("thrown by " + std::to_string(name));
    return 0;
  }
  double add_up(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), static_cast<double>(name));
  }
  double add_up_in_place(Payload<double> values) {
    return std::accumulate(values.data(), values.data() + values.size(), static_cast<double>(name));
  }
  std::string describe(CombinedSection<Node> other) {
    return std::to_string(name) + (other.contains(proxy()[index()]) ? " in " : " not in ") +
           std::to_string(other.size());
  }
  void go(int to_pe) { migrate(to_pe); }

  void give(CombinedSection<Node> section, Future<int> sum) {
    contribute(name, Reducer::kSum, target_of(sum), section);
  }
  void give_each(CombinedSection<Node> section, std::vector<Future<int>> sums) {
    for (std::size_t i = 0; i < sums.size(); ++i)
      contribute(static_cast<int>(i), Reducer::kSum, target_of(sums[i]), section);
  }
  void give_name(CombinedSection<Node> section, Future<std::vector<int>> all) {
    contribute(name, Reducer::kGather, target_of(all), section);
  }
  void give_list(CombinedSection<Node> section, Future<std::vector<int>> all) {
    contribute(std::vector<int>(static_cast<std::size_t>(name % 3), name), Reducer::kConcat, target_of(all),
               section);
  }
  static int larger(int a, int b) { return a > b ? a : b; }
  void give_own(CombinedSection<Node> section, Future<int> largest) {
    contribute<&Node::larger>(name, target_of(largest), section);
  }
  void arrive(CombinedSection<Node> section, Future<> all) { contribute(target_of(all), section); }
  // The members make the section on their own.
  void give_to_both(CollectionProxy<Node> first, CollectionProxy<Node> second, Future<int> sum) {
    contribute(name, Reducer::kSum, target_of(sum), CombinedSection(first, second));
  }
  void give_to(CombinedSection<Node> from, CombinedSection<Node> to) {
    contribute(1, Reducer::kSum, to.target<&Node::take>(7), from);
  }
  void give_to_part(CombinedSection<Node> from, Section<Node> to) {
    contribute(1, Reducer::kSum, to.target<&Node::take>(8), from);
  }
  void take(int what, int sum) { results.emplace_back(what, sum); }
  std::vector<std::pair<int, int>> taken() { return results; }

  int name = 0;
  int calls = 0;
  std::vector<std::pair<int, int>> results;
};

void run_on(int num_pes, const char* machine, const std::function<Task<>(Runtime&)>& main) {
  SCOPED_TRACE(std::string(machine) + ", PEs: " + std::to_string(num_pes));
  testing::InProcessJob job(num_pes, machine);
  EXPECT_EQ(job.run(main), "");
}

void run_everywhere(const std::function<Task<>(Runtime&)>& main) {
  for (const int num_pes : {1, 3, 4}) run_on(num_pes, "loopback", main);
  run_on(3, "ucx", main);
}

// GCC 12 does not compile braced lists in an expression with co_await.
template <class... Values>
std::vector<int> ints(Values... values) {
  return {values...};
}
template <class... Ints>
Section<Node> some_of(const CollectionProxy<Node>& nodes, Ints... indices) {
  return nodes.section({Index(indices)...});
}

struct Nodes {
  explicit Nodes(Runtime& runtime)
      : first(Array<Node>::create(runtime, {8}, 1)),
        second(Array<Node>::create(runtime, {2, 3}, 2)),
        none(first.section(std::vector<Index>())) {}
  // Elements of three parts, one of them empty.
  CombinedSection<Node> some() const {
    return CombinedSection(some_of(first, 7, 1), none, second.slice({Range::one(1), Range::all()}), first[3]);
  }
  Array<Node> first;
  Array<Node> second;
  Section<Node> none;
};
const std::vector<int> kNames = {107, 101, 203, 204, 205, 103};  // of Nodes::some()

TEST(CombinedSection, EachMemberGetsACallAndResultsComeInTheOrderOfTheParts) {
  run_everywhere([](Runtime& runtime) -> Task<> {
    const Nodes nodes(runtime);  // the calls may arrive before the elements exist
    const auto some = nodes.some();
    EXPECT_EQ(some.size(), 6U);
    EXPECT_EQ(some.parts().size(), 3U);
    some.send<&Node::hear>();
    EXPECT_EQ(co_await some.call<&Node::get_name>(), kNames);
    EXPECT_EQ(co_await some.call<&Node::get_name_later>(), kNames);
    co_await some.call<&Node::hear>();
    co_await runtime.quiescence();
    EXPECT_EQ(co_await nodes.first.call<&Node::count_calls>(), ints(0, 2, 0, 2, 0, 0, 0, 2));
    EXPECT_EQ(co_await nodes.second.call<&Node::count_calls>(), ints(0, 0, 0, 2, 2, 2));
    const CombinedSection empty(nodes.none, nodes.second.section(std::vector<Index>()));
    EXPECT_EQ(co_await empty.call<&Node::get_name>(), ints());
    const CombinedSection one_empty(nodes.second.section(std::vector<Index>()), nodes.first[2]);
    EXPECT_EQ(co_await one_empty.call<&Node::get_name>(), ints(102));
    for (std::uint64_t i = 0; i < some.size(); ++i)
      EXPECT_EQ(co_await some[i].call<&Node::get_name>(), kNames[i]);
    EXPECT_THROW(static_cast<void>(some[6]), Error);
  });
}

TEST(CombinedSection, AnElementHasOnePlace) {
  run_everywhere([](Runtime& runtime) -> Task<> {
    const Nodes nodes(runtime);
    const auto low = nodes.first.slice({Range{0, 3, 1}});
    const auto row = nodes.second.slice({Range::one(0), Range::all()});
    const CombinedSection all(low, row, nodes.first, nodes.second(0, 1), some_of(nodes.first, 0, 7));
    EXPECT_EQ(co_await all.call<&Node::get_name>(),
              ints(100, 101, 102, 200, 201, 202, 103, 104, 105, 106, 107));
    EXPECT_TRUE(all.contains(nodes.first[5]));
    EXPECT_FALSE(all.contains(nodes.second(1, 1)));
    // Neighbours of one collection are one part, so that equal sections are the same however they were made.
    const CombinedSection joined(std::vector<Section<Node>>{low, nodes.first.slice({Range{3, 5, 1}}), row});
    EXPECT_TRUE(joined.members() == CombinedSection(nodes.first, row).members());
    EXPECT_FALSE(joined.members() == CombinedSection(row, nodes.first).members());
    EXPECT_TRUE(CombinedSection(nodes.second.section(std::vector<Index>()), joined, nodes.none).members() ==
                joined.members());
    EXPECT_TRUE(CombinedSection(joined, row).members() == joined.members());
  });
}

TEST(CombinedSection, LargeArgumentsAndPayloadsReachEachMember) {
  run_everywhere([](Runtime& runtime) -> Task<> {
    const Nodes nodes(runtime);
    const auto some = nodes.some();
    co_await runtime.quiescence();
    nodes.first[7].send<&Node::go>(runtime.num_pes() / 2);
    for (const std::size_t size : {std::size_t{3}, std::size_t{20'000}, std::size_t{300'000}}) {
      const std::vector<double> values(size, 2);
      std::vector<double> expected;
      for (const int name : kNames) expected.push_back(2.0 * static_cast<double>(size) + name);
      EXPECT_EQ(co_await some.call<&Node::add_up>(values), expected);
      EXPECT_EQ(co_await some.call<&Node::add_up_in_place>(nocopy(values)), expected);
      co_await some.send<&Node::add_up_in_place>(nocopy(values));
      const CombinedSection empty(nodes.none, nodes.second.section(std::vector<Index>()));
      co_await empty.send<&Node::add_up_in_place>(nocopy(values));
    }
  });
}

TEST(CombinedSection, AnExceptionOfAMemberIsThatOfTheCall) {
  run_everywhere([](Runtime& runtime) -> Task<> {
    const Nodes nodes(runtime);
    const auto some = nodes.some();
    EXPECT_TRUE(says(co_await error_of(some.call<&Node::throw_from>(2)), "thrown by "));
    const CombinedSection turned(nodes.second, some);
    EXPECT_TRUE(says(co_await error_of(turned.call<&Node::throw_from>(4)), "thrown by "));
    EXPECT_EQ(co_await error_of(some.call<&Node::throw_from>(8)), "");
  });
}

TEST(CombinedSection, TravelsAsAnArgument) {
  run_everywhere([](Runtime& runtime) -> Task<> {
    const Nodes nodes(runtime);
    EXPECT_EQ(co_await nodes.first[7].call<&Node::describe>(nodes.some()), "107 in 6");
    const auto described =
        co_await CombinedSection(nodes.first, nodes.second).call<&Node::describe>(nodes.some());
    EXPECT_EQ(described[2], "102 not in 6");
    EXPECT_EQ(described[8 + 3], "203 in 6");
    const CombinedSection<Node> none;
    EXPECT_EQ(base::unpack<CombinedSection<Node>>(base::pack(none, &runtime), &runtime).size(), 0U);
    EXPECT_TRUE(says(co_await error_of([&]() -> Task<> {
                       none.send<&Node::hear>();
                       co_return;
                     }()),
                     "without parts"));
  });
}

TEST(CombinedSection, ReductionsEnd) {
  run_everywhere([](Runtime& runtime) -> Task<> {
    const Nodes nodes(runtime);
    const auto some = nodes.some();
    for (int round = 0; round < 3; ++round) {
      Future<int> sum(runtime);
      some.send<&Node::give>(some, sum);
      EXPECT_EQ(co_await sum, std::accumulate(kNames.begin(), kNames.end(), 0));
      Future<std::vector<int>> gathered(runtime);
      some.send<&Node::give_name>(some, gathered);
      EXPECT_EQ(co_await gathered, kNames);
      Future<std::vector<int>> joined(runtime);
      some.send<&Node::give_list>(some, joined);
      EXPECT_EQ(co_await joined, ints(107, 107, 101, 101, 203, 203, 205, 103));
      Future<int> largest(runtime);
      some.send<&Node::give_own>(some, largest);
      EXPECT_EQ(co_await largest, 205);
      Future<> all(runtime);
      some.send<&Node::arrive>(some, all);
      co_await all;
      // Another combined section, made by the members: it is numbered on its own.
      Future<int> of_both(runtime);
      CombinedSection(nodes.first, nodes.second)
          .send<&Node::give_to_both>(nodes.first, nodes.second, of_both);
      EXPECT_EQ(co_await of_both, 8 * 100 + 28 + 6 * 200 + 15);
    }
  });
}

TEST(CombinedSection, ReductionsInFlightAreNumberedWhileMembersMove) {
  run_everywhere([](Runtime& runtime) -> Task<> {
    const Nodes nodes(runtime);
    const auto some = nodes.some();
    const unsigned seed = std::random_device()();
    std::printf("seed %u\n", seed);
    std::mt19937 random(seed);
    for (int round = 0; round < 10; ++round) {
      for (std::uint64_t i = 0; i < some.size(); ++i) {
        if (random() % 2 == 0)
          some[i].send<&Node::go>(static_cast<int>(random() % static_cast<unsigned>(runtime.num_pes())));
      }
      std::vector<Future<int>> sums;
      for (int i = 0; i < 20; ++i) sums.emplace_back(runtime);
      some.send<&Node::give_each>(some, sums);
      some.send<&Node::hear>();
      for (int i = 0; i < 20; ++i) EXPECT_EQ(co_await sums[static_cast<std::size_t>(i)], 6 * i);
    }
    co_await runtime.quiescence();
    EXPECT_EQ(co_await some.call<&Node::count_calls>(), std::vector<int>(6, 10));
  });
}

TEST(CombinedSection, ItsMethodsAndThoseOfItsPartsAreTargets) {
  run_everywhere([](Runtime& runtime) -> Task<> {
    const Nodes nodes(runtime);
    const auto some = nodes.some();
    const CombinedSection to(nodes.second(0, 0), nodes.first[4], nodes.none);
    some.send<&Node::give_to>(some, to);
    co_await runtime.quiescence();
    some.send<&Node::give_to_part>(some, some_of(nodes.first, 4));
    quiescence(runtime, to.target<&Node::hear>());
    co_await runtime.quiescence();
    const std::vector<std::pair<int, int>> one = {{7, 6}};
    const std::vector<std::pair<int, int>> both = {{7, 6}, {8, 6}};
    EXPECT_EQ(co_await nodes.second(0, 0).call<&Node::taken>(), one);
    EXPECT_EQ(co_await nodes.first[4].call<&Node::taken>(), both);
    EXPECT_EQ(co_await to.call<&Node::count_calls>(), ints(1, 1));
  });
}

TEST(CombinedSection, WhatDoesNotFitIsRefused) {
  run_everywhere([](Runtime& runtime) -> Task<> {
    const Nodes nodes(runtime);
    Future<> all(runtime);
    EXPECT_TRUE(says(co_await error_of(nodes.first[0].call<&Node::arrive>(nodes.some(), all)),
                     "over a combined section in which it is no member"));
    const auto sparse = Array<Node>::create_sparse(runtime, {100});
    co_await sparse.insert(3, 3);
    co_await sparse.done_inserting();
    const CombinedSection mixed(some_of(sparse, 3), nodes.first[1]);
    EXPECT_EQ(co_await mixed.call<&Node::get_name>(), ints(303, 101));
    EXPECT_TRUE(
        says(co_await error_of(nodes.first[1].call<&Node::arrive>(mixed, all)), "a sparse array, whose"));
    EXPECT_THROW(CombinedSection(sparse, nodes.first), Error);
    EXPECT_THROW(CombinedSection<Node>(std::vector<Section<Node>>()), Error);
  });
}

TEST(CombinedSection, APartOfADestroyedCollectionSaysSo) {
  run_everywhere([](Runtime& runtime) -> Task<> {
    for (const bool ends_first : {true, false}) {
      const Nodes nodes(runtime);
      const auto some = nodes.some();
      Future<int> sum(runtime);
      const Section<Node> part = some_of(nodes.first, 7, 1);
      part.send<&Node::give>(some, sum);
      co_await runtime.quiescence();
      co_await (ends_first ? nodes.first : nodes.second).destroy();
      EXPECT_TRUE(says(co_await error_of(sum), "was destroyed before the reduction was complete"));
      const auto call = [&]() -> Task<> { co_await some.call<&Node::get_name>(); };
      EXPECT_TRUE(says(co_await error_of(call()), "Node has been destroyed; a proxy"));
      Future<> late(runtime);
      const auto& living = ends_first ? nodes.second(1, 0) : nodes.first[7];
      EXPECT_TRUE(says(co_await error_of(living.call<&Node::arrive>(some, late)), "has been destroyed"));
    }
  });
}

TEST(CombinedSection, IsSavedAndRestoredUnlessAReductionLacksContributions) {
  const testing::TemporaryFolder folder;
  run_on(3, "loopback", [&](Runtime& runtime) -> Task<> {
    const Nodes nodes(runtime);
    const auto some = nodes.some();
    Future<int> sum(runtime);
    nodes.first[7].send<&Node::give>(some, sum);
    const std::string error = co_await error_of(checkpoint(runtime, folder.path(), nodes.second, some));
    EXPECT_TRUE(says(error, "contributed to a reduction that is not complete"));
    for (std::uint64_t i = 1; i < some.size(); ++i) some[i].send<&Node::give>(some, sum);
    co_await sum;
    co_await checkpoint(runtime, folder.path(), nodes.first, nodes.second, some);
  });
  run_on(2, "loopback", [&](Runtime& runtime) -> Task<> {
    Array<Node> first;
    Array<Node> second;
    CombinedSection<Node> some;
    co_await restore(runtime, folder.path(), first, second, some);
    EXPECT_EQ(co_await some.call<&Node::get_name>(), kNames);
    Future<std::vector<int>> all(runtime);
    some.send<&Node::give_name>(some, all);
    EXPECT_EQ(co_await all, kNames);
  });
}

// --- Flow control: a call that is refused reaches no member of any part, also if the full PE has members of the last part only.

TEST(CombinedSection, ACallThatIsRefusedReachesNoMember) {
  runtime::RuntimeOptions options;
  options.watermarks = {100'000, 200'000, 1'000'000};
  testing::InProcessJob job(3, "loopback", options);
  const auto first = Array<Node>::create(job.runtime(0), {3}, 1);
  const auto second = Array<Node>::create(job.runtime(0), {3}, 2);
  const auto settle = [&job] {
    for (int i = 0; i < 3000; ++i) {
      for (int pe = 0; pe < 3; ++pe) job.runtime(pe).step();
    }
  };
  settle();
  const CombinedSection some(first[0], second[2]);
  int passed = 0;
  try {
    for (; passed < 100'000; ++passed) {
      static_cast<void>(some.call<&Node::get_name>());
      some.send<&Node::hear>();
    }
    ADD_FAILURE() << "nothing was refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), StatusCode::kOutOfMemory);
  }
  EXPECT_GT(passed, 100);
  settle();
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    co_await runtime.quiescence();
    EXPECT_EQ(co_await some.call<&Node::count_calls>(), ints(passed, passed));
  }),
            "");
}

// --- Claims of a peer

std::string failure_of(const std::function<runtime::MessagePtr(Runtime&, const Nodes&)>& make) {
  testing::InProcessJob job(2, "loopback");
  return job.run([&](Runtime& runtime) -> Task<> {
    const Nodes nodes(runtime);
    co_await nodes.first.created();
    co_await nodes.second.created();
    runtime.send(1, make(runtime, nodes));
    co_await runtime.quiescence();
    co_await runtime.sleep(0);
  });
}

TEST(CombinedSection, PartsOfReductionsThatDoNotFitEndTheJobWithASentence) {
  for (const bool is_unknown : {true, false}) {
    const std::string failure = failure_of([is_unknown](Runtime& runtime, const Nodes& nodes) {
      const std::uint64_t collection = nodes.first.collection().id();
      SectionPart part{{collection, {7, 1 - collection}, 0}, 4, 0, {nodes.second.collection().id()}};
      if (is_unknown) part.others.push_back(std::uint64_t{2} << 32);
      runtime::Partial partial;
      Future<int> target(runtime);
      const int one = 1;
      partial.add_contribution(runtime, 0, Reducer::kSum, runtime::value_combiner<int>(Reducer::kSum),
                               runtime::pack_contribution(one, Reducer::kSum, runtime), target_of(target));
      const auto pack = [&] {
        return runtime::Message::pack(runtime, handler_of(runtime, kSectionPart), part, partial);
      };
      if (is_unknown) return pack();
      runtime.send(1, pack());
      part.others.clear();
      return pack();
    });
    EXPECT_TRUE(says(failure, is_unknown ? "does not fit" : "4 members in 2 collections and 4 in 1"));
  }
}

TEST(CombinedSection, TargetsThatDoNotFitEndTheJobWithASentence) {
  for (int wrong = 0; wrong < 5; ++wrong) {
    SCOPED_TRACE(wrong);
    const std::string failure = failure_of([wrong](Runtime& runtime, const Nodes& nodes) {
      const runtime::HandlerId handler = handler_of(runtime, kCombinedTarget);
      const Section<Node> part = some_of(nodes.first, 1, 2);
      EntryHeader header{nodes.first.collection().id(), 0, EntryMethod<Node, &Node::take>::info().id, 0, {}};
      if (wrong == 2) header.collection = nodes.second.collection().id();
      if (wrong == 3) header.reply = {ReplyTo::Kind::kFuture, 0, 1};
      if (wrong == 0) return runtime::Message::pack(runtime, handler, std::uint64_t{0}, header);
      if (wrong == 1) return runtime::Message::pack(runtime, handler, std::uint64_t{2}, part, part, header);
      if (wrong == 4)
        return runtime::Message::pack(runtime, handler, std::uint64_t{1}, part, base::SmallBytes());
      return runtime::Message::pack(runtime, handler, std::uint64_t{1}, part, base::pack_small(header));
    });
    const char* const words[] = {"without parts", "do not fit together", "does not fit", "does not fit",
                                 "no header"};
    EXPECT_TRUE(says(failure, words[wrong])) << failure;
  }
}

}  // namespace
}  // namespace weft::chare
