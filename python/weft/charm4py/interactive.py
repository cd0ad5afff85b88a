"""``python -m charm4py.interactive``: a prompt on PE 0. With `weft run --charm4py`, on several PEs."""

import weft.charm4py

globals().update({name: getattr(weft.charm4py, name) for name in weft.charm4py.__all__})

if __name__ == "__main__":
    weft.charm4py.charm.start(interactive=True)
