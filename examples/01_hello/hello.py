"""One chare per PE says where it is, and main waits until all have.

weft run -n 2 examples/01_hello/hello.py
"""

import weft


class Greeter(weft.Chare):
    def greet(self):
        print(f"hello from PE {weft.my_pe()} of {weft.num_pes()}")


async def main():
    greeters = weft.Group(Greeter)
    await greeters.greet.call()
    print("all PEs have said hello")


weft.run(main)
