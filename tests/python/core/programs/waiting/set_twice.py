"""A second set of a future names what has set it first: set_twice.py [far SETTER]; `far` ends the job."""

import sys

import weft


class Setter(weft.Chare):
    def first(self, future):
        self.set_it(future)

    def set_it(self, future):
        future.set(self.index)

    def second(self, future):
        future.set("second")

    def caught(self, future):
        try:
            future.set("second")
        except weft.Error as error:
            return str(error)
        return "nothing"


async def near():
    setters = weft.Array(Setter, 2 * weft.num_pes())
    for setter in setters:
        future = weft.Future()
        await setter.first.call(future)
        assert await future == setter.index
        try:
            future.set(1)
        except weft.Error as error:
            text = str(error)
        pe = setter.index // 2
        line = Setter.set_it.__code__.co_firstlineno + 1
        for words in ("second time", f"Setter[{setter.index}] on PE {pe}", f"set_it, set_twice.py:{line}"):
            assert words in text, text
    future = weft.Future()
    future.set(1)
    text = await setters[0].caught.call(future)
    assert "PE 0 (near, set_twice.py:" in text, text
    several = weft.Future(2)
    await setters[0].first.call(several)
    await setters[1].first.call(several)
    for again in (lambda: several.set(1), lambda: several.set_error(ValueError())):
        try:
            again()
        except weft.Error as error:
            assert "more often" in str(error) and "Setter[1] on PE 0" in str(error), error
    failed = weft.Future()
    failed.set_error(KeyError("k"))
    try:
        failed.set(1)
    except weft.Error as error:
        assert "PE 0 (near, set_twice.py:" in str(error), error
    called = weft.Future()
    weft.sleep(0).then(lambda _: called.set(1))
    await called
    try:
        called.set(1)
    except weft.Error as error:
        assert "PE 0 (" in str(error) and "<lambda>, set_twice.py:" in str(error), error
    print("all checked")


async def far():
    setters = weft.Array(Setter, 2, map="round_robin")
    future = weft.Future()
    await setters[int(sys.argv[2])].first.call(future)
    await setters[1].second.call(future)
    await weft.quiescence()


weft.run(far if len(sys.argv) > 1 else near)
