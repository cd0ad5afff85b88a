"""Exceptions whose text has lone surrogates, as a file name that is not UTF-8; the last one ends the job."""

import os

import weft

NAME = os.fsdecode(b"caf\xe9")


class Worker(weft.Chare):
    def fail(self):
        raise ValueError(f"no file {NAME}")

    def fail_unawaited(self):
        self.fail()


class SilentError(Exception):
    def __str__(self):
        raise RuntimeError


async def main():
    worker = weft.Singleton(Worker, weft.num_pes() - 1)
    try:
        await worker.fail.call()
    except weft.RemoteError as error:
        assert error.type_name == "ValueError" and error.message == "no file caf\\udce9", ascii(error.message)
        assert str(error) == f"no file {NAME}" and "no file caf\\udce9" in str(error.__cause__), ascii(
            str(error)
        )
    failed = weft.Future()
    failed.set_error(SilentError())
    try:
        await failed
    except weft.RemoteError as error:
        assert error.message == "(no text)"
    assert await weft.asyncio_future(echo(NAME)) == NAME
    await worker.fail_unawaited()
    await weft.sleep(3600)


async def echo(text):
    return text


weft.run(main)
