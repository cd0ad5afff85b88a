#include "weft/chare/chares.h"

#include <gtest/gtest.h>

#include "tests/support/in_process_job.h"

namespace weft::chare {
namespace {

struct Element : Chare<Element> {
  Element() { made_at = index().to_string() + " on PE " + std::to_string(pe()); }
  std::string where_made() { return made_at; }
  int touch() { return ++touched; }
  std::string made_at;
  int touched = 0;
};

// Makes an array and sends its proxy to the last PE, where it arrives before or after the creation.
struct CollectionMaker : Chare<CollectionMaker> {
  int use(CollectionProxy<Element> elements) {
    for (std::uint64_t i = 0; i < elements.shape().size(); ++i) {
      elements[static_cast<int>(i)].send<&Element::touch>();
    }
    elements.send<&Element::touch>();
    return 0;
  }
  void make(ElementProxy<CollectionMaker> user, bool table, Future<std::vector<int>> result) {
    Shape shape = table ? Shape(10).with_table({2, 2, 1, 0, 1, 0, 2, 1, 0, 0}) : Shape(10);
    auto elements = Array<Element>::create(runtime(), shape);
    user.send<&CollectionMaker::use>(elements);
    runtime().quiescence().then([elements, result](const Future<>&) {
      elements.call<&Element::touch>().then(
          [result](const Future<std::vector<int>>& all) { result.set(all.get()); });
    });
  }
};

TEST(Chares, IndexIsKnownInTheConstructor) {
  testing::InProcessJob job(2);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto elements = Array<Element>::create(runtime, {2, 2});
    EXPECT_EQ((co_await elements(1, 0).call<&Element::where_made>()), "(1, 0) on PE 1");
  }),
            "");
}

TEST(Chares, MessagesThatComeBeforeTheCreationWait) {
  for (int maker = 0; maker < 3; ++maker) {
    for (int user = 0; user < 6; ++user) {
      testing::InProcessJob job(3);
      std::vector<int> touched;
      EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
        auto makers = Group<CollectionMaker>::create(runtime);
        Future<std::vector<int>> result(runtime);
        makers[maker].send<&CollectionMaker::make>(makers[user % 3], user >= 3, result);
        touched = co_await result;
      }),
                "");
      EXPECT_EQ(touched, std::vector<int>(10, 3)) << maker << " makes, " << user << " uses";
    }
  }
}

TEST(Chares, NamesForPeopleShowTheIndex) {
  testing::InProcessJob job(1);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto grid = Array<Element>::create(runtime, {2, 3});
    std::string name = grid.collection().element_name(5);
    EXPECT_EQ(name.substr(name.find("Element")), "Element[1, 2]");
    EXPECT_EQ(Array<Element>::create(runtime, {4}).collection().element_name(3).back(), ']');
    co_return;
  }),
            "");
}

TEST(Chares, AChareCannotBeMadeDirectly) { EXPECT_THROW(Element(), Error); }

struct Refuses : Chare<Refuses> {
  Refuses() {
    if (index() == 3) throw std::runtime_error("not me");
  }
};

TEST(Chares, AnExceptionInAConstructorNamesTheElement) {
  testing::InProcessJob job(2);
  std::string failure = job.run([](Runtime& runtime) -> Task<> {
    Array<Refuses>::create(runtime, {4});
    co_await runtime.make_future<>();
  });
  EXPECT_NE(failure.find("Refuses[3] on PE 1"), std::string::npos) << failure;
  EXPECT_NE(failure.find("not me"), std::string::npos) << failure;
}

TEST(Chares, AMessageThatDoesNotFitItsCollectionIsRefused) {
  testing::InProcessJob job(2);
  std::string failure = job.run([](Runtime& runtime) -> Task<> {
    auto elements = Array<Element>::create(runtime, {4});
    auto& chares = runtime.model<Chares>();
    EntryHeader header{elements.collection().id(), 3, 9999, 0, {}};
    chares.send_entry(elements.collection(), 3, chares.make_entry_message(header, 0));
    co_await runtime.make_future<>();
  });
  EXPECT_NE(failure.find("do all PEs run the same program"), std::string::npos) << failure;
}

TEST(Chares, AMessageForAnElementOutsideIsRefused) {
  testing::InProcessJob job(2);
  std::string failure = job.run([](Runtime& runtime) -> Task<> {
    auto elements = Array<Element>::create(runtime, {4});
    auto& chares = runtime.model<Chares>();
    EntryHeader header{elements.collection().id(), 77, 0, 0, {}};
    runtime.send(1, chares.make_entry_message(header, 0));
    co_await runtime.make_future<>();
  });
  EXPECT_NE(failure.find("element 77"), std::string::npos) << failure;
}

TEST(Chares, MessagesToTheWrongPeAreForwardedToTheHome) {
  testing::InProcessJob job(3);
  int touched = 0;
  EXPECT_EQ(job.run([&](Runtime& runtime) -> Task<> {
    auto elements = Array<Element>::create(runtime, Shape(3));
    co_await runtime.quiescence();
    auto& chares = runtime.model<Chares>();
    std::uint32_t entry = EntryMethod<Element, &Element::touch>::info().id;
    runtime.send(1, chares.make_entry_message({elements.collection().id(), 2, entry, 0, {}}, 0));
    co_await runtime.quiescence();
    touched = co_await elements[2].call<&Element::touch>();
  }),
            "");
  EXPECT_EQ(touched, 2);
}

TEST(Chares, OneDoesNotLeaveACoroutineBehind) {
  struct Waits : Chare<Waits> {
    Task<> wait() { co_await runtime().sleep(0.0001); }
    std::uint32_t suspended() { return num_suspended(); }
  };
  testing::InProcessJob job(1);
  EXPECT_EQ(job.run([](Runtime& runtime) -> Task<> {
    auto waits = Array<Waits>::create(runtime, {1});
    Future<> done = waits[0].call<&Waits::wait>();
    EXPECT_EQ((co_await waits[0].call<&Waits::suspended>()), 1u);
    co_await done;
    EXPECT_EQ((co_await waits[0].call<&Waits::suspended>()), 0u);
  }),
            "");
}

}  // namespace
}  // namespace weft::chare
