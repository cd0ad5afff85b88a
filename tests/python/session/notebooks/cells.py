"""The cells of the notebook that test_notebook.py runs."""

# %%
import os

import weft

# %%
class Greeter(weft.Chare):
    def greet(self, name):
        return f"{name}, this is PE {weft.my_pe()}"

    def speak(self):
        print(f"spoken on PE {weft.my_pe()}", flush=True)

async def main():
    greeters = weft.Array(Greeter, 2)
    await greeters[1].speak.call()
    return await greeters.greet.call("first")

weft.run(main, pes=2)

# %%
weft.run(main, pes=2)

# %%
async def failing():
    raise KeyError("from main")

weft.run(failing, pes=2)

# %%
session = weft.session(pes=2)
greeters = session.run(lambda: weft.Array(Greeter, 2))
session

# %%
# A chare of the cell before, awaited at the top level.
await session.submit(lambda: greeters.greet.call("second"))

# %%
class Greeter(weft.Chare):
    def shout(self, name):
        return name.upper()

async def old_and_new():
    return await greeters.greet.call("third"), await weft.Array(Greeter, 2).shout.call("fourth")

await session.submit(old_and_new)

# %%
weft.run(failing)

# %%
session.close()
session.closed
